//! The state that a job with `verify` saves at its end: how many of its writes are complete. The form is that of fio 3.33.

use super::digest::crc32c_register;

/// Version of the form.
const VERSION: u64 = 3;
/// Version, length and checksum.
const HEAD: usize = 24;
/// Bytes before the list of completed writes.
const FIXED: usize = 152;
/// Bytes of the job's name.
const NAME: usize = 64;
/// In place of a part of fio's random generator: the state is that of a job of this program.
const MARK: u32 = 0x6661_7468;
/// Most writes in the list.
const LISTED: usize = 1 << 16;

/// What a job has written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedState {
    /// Name of the job, up to 64 bytes.
    pub name: String,
    /// Number of the worker, over all jobs of the run.
    pub worker: u64,
    /// Writes that are complete.
    pub writes: u64,
    /// Seed of the order of the writes; `None` where another program has saved the state.
    pub seed: Option<u64>,
    /// Files of the job.
    pub files: u32,
    /// File and offset of the last writes.
    pub last: Vec<(u64, u64)>,
}

impl SavedState {
    /// The state as it is stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        let last = &self.last[..self.last.len().min(LISTED)];
        let mut body = Vec::with_capacity(FIXED + 16 * last.len());
        body.extend_from_slice(&(last.len() as u64).to_le_bytes());
        body.extend_from_slice(&(last.len() as u32).to_le_bytes());
        body.extend_from_slice(&self.files.to_le_bytes());
        body.extend_from_slice(&self.writes.to_le_bytes());
        body.extend_from_slice(&self.worker.to_le_bytes());
        body.extend_from_slice(&[0; 8]);
        body.extend_from_slice(&self.seed.unwrap_or(0).to_le_bytes());
        body.extend_from_slice(&self.seed.map_or(0, |_| MARK).to_le_bytes());
        body.resize(FIXED - NAME, 0);
        body.extend_from_slice(&self.name.as_bytes()[..self.name.len().min(NAME - 1)]);
        body.resize(FIXED, 0);
        for (file, offset) in last {
            body.extend_from_slice(&file.to_le_bytes());
            body.extend_from_slice(&offset.to_le_bytes());
        }
        let head = [VERSION, body.len() as u64, u64::from(crc32c_register(&body))];
        [head.map(u64::to_le_bytes).as_flattened(), &body].concat()
    }

    /// The state in `bytes`.
    ///
    /// # Errors
    /// Why they are no state.
    pub fn from_bytes(bytes: &[u8]) -> Result<SavedState, &'static str> {
        let (head, body) = bytes.split_at_checked(HEAD).ok_or("is too short")?;
        let number = |bytes: &[u8], at: usize| -> u64 {
            bytes.get(at..at + 8).map_or(0, |bytes| u64::from_le_bytes(std::array::from_fn(|i| bytes[i])))
        };
        if number(head, 0) != VERSION {
            return Err("is of another version of fio");
        }
        if number(head, 8) != body.len() as u64 || body.len() < FIXED {
            return Err("has another length than it says");
        }
        if number(head, 16) != u64::from(crc32c_register(body)) {
            return Err("is damaged");
        }
        let name = &body[FIXED - NAME..FIXED];
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(NAME);
        let is_ours = number(body, 48) as u32 == MARK;
        Ok(SavedState {
            name: String::from_utf8_lossy(&name[..end]).into_owned(),
            worker: number(body, 24),
            writes: number(body, 16),
            seed: is_ours.then(|| number(body, 40)),
            files: (number(body, 8) >> 32) as u32,
            last: body[FIXED..].chunks_exact(16).map(|pair| (number(pair, 0), number(pair, 8))).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_state_of_fio_is_read() {
        // What Debian's fio 3.33 saved when it was interrupted after seven of sixteen writes.
        let mut fio = vec![0; 192];
        fio[0] = 3;
        fio[8] = 0xa8;
        fio[16..20].copy_from_slice(&0x8a58_6ea0_u32.to_le_bytes());
        fio[24] = 1;
        fio[32] = 1;
        fio[36] = 1;
        fio[40] = 7;
        fio[112] = b'a';
        fio[185] = 0x60;
        let state = SavedState {
            name: "a".to_owned(),
            worker: 0,
            writes: 7,
            seed: None,
            files: 1,
            last: vec![(0, 24576)],
        };
        assert_eq!(SavedState::from_bytes(&fio), Ok(state.clone()));
        assert_eq!(state.to_bytes(), fio);
        fio[40] = 8;
        assert_eq!(SavedState::from_bytes(&fio), Err("is damaged"));
        assert_eq!(SavedState::from_bytes(&fio[..20]), Err("is too short"));
    }

    proptest! {
        #[test]
        fn a_state_is_read_as_it_was_saved(
            name in "[a-z]{0,63}",
            (worker, writes, seed, files) in any::<(u64, u64, Option<u64>, u32)>(),
            last in proptest::collection::vec(any::<(u64, u64)>(), 0..9),
        ) {
            let state = SavedState { name, worker, writes, seed, files, last };
            prop_assert_eq!(SavedState::from_bytes(&state.to_bytes()), Ok(state));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = SavedState::from_bytes(&bytes);
        }
    }
}
