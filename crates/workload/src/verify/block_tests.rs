use fathom_model::plan::FillPattern;
use proptest::prelude::*;

use super::*;

const SEED: u64 = 0x0123_4567_89ab_cdef;

fn plan(method: VerifyMethod) -> VerifyPlan {
    let patterned = method.compares_pattern() && method != VerifyMethod::Meta;
    VerifyPlan {
        pattern: patterned.then(|| FillPattern { bytes: b"fathom!".to_vec(), ..FillPattern::default() }),
        ..VerifyPlan::new(method)
    }
}

fn methods() -> impl Iterator<Item = VerifyMethod> {
    VerifyMethod::NAMED.into_iter().map(|(_, method)| method)
}

fn written(plan: &VerifyPlan, len: usize, offset: u64, seed: u64) -> Vec<u8> {
    let mut block = vec![0; len];
    BlockWriter::new(plan, None, 1).write(&mut block, offset, seed);
    block
}

fn findings(plan: &VerifyPlan, block: &mut [u8], offset: u64, seed: Option<u64>) -> Vec<Finding> {
    let mut findings = Vec::new();
    BlockCheck::new(plan, block.len(), false).check(block, offset, seed, &mut findings);
    findings
}

#[test]
fn every_method_accepts_its_own_blocks() {
    for method in methods() {
        for (len, interval, offset) in
            [(4096, 0, 0), (1003, 0, 0), (4096, 1024, 0), (4096, 1024, 300), (8192, 0, 2000), (765, 255, 0)]
        {
            let plan = VerifyPlan { interval, offset, ..plan(method) };
            let mut block = written(&plan, len, 8192, SEED);
            let before = block.clone();
            assert_eq!(findings(&plan, &mut block, 8192, Some(SEED)), [], "{} {len}", method.name());
            assert!(block == before, "the check changes nothing");
        }
    }
}

#[test]
fn every_method_finds_a_flipped_bit() {
    for method in methods().filter(|method| *method != VerifyMethod::Null) {
        for at in [0, 7, 20, 39, 41, 200, 2000, 4095] {
            let mut block = written(&plan(method), 4096, 0, SEED);
            block[at] ^= 4;
            let found = findings(&plan(method), &mut block, 0, Some(SEED));
            // Of a block with a header alone, the data is not known.
            let expected = usize::from(method != VerifyMethod::Meta || at < Header::LEN);
            assert_eq!(found.len(), expected, "{} at {at}: {found:?}", method.name());
        }
    }
}

#[test]
fn swapped_torn_and_stale_blocks_are_told_apart() {
    let plan = plan(VerifyMethod::Crc32c);
    let mut other = written(&plan, 4096, 4096, SEED);
    let found = findings(&plan, &mut other, 0, Some(SEED));
    assert_eq!(found[0].mismatch, Mismatch::Offset { found: 4096, wanted: 0 });
    let (mut new, old) = (written(&plan, 4096, 0, SEED), written(&plan, 4096, 0, 5));
    new[2048..].copy_from_slice(&old[2048..]);
    assert!(matches!(findings(&plan, &mut new, 0, Some(SEED))[0].mismatch, Mismatch::Checksum(_)));
    let mut old = old;
    let stale = findings(&plan, &mut old, 0, Some(SEED));
    assert_eq!(stale[0].mismatch, Mismatch::Seed { found: 5, wanted: SEED });
    assert_eq!(findings(&plan, &mut old, 0, None), [], "no seed is known");
    let mut zeroes = vec![0; 4096];
    assert_eq!(findings(&plan, &mut zeroes, 0, None)[0].mismatch, Mismatch::Magic { found: 0 });
}

#[test]
fn each_interval_is_checked_unless_the_first_is_fatal() {
    let plan = VerifyPlan { interval: 1024, ..plan(VerifyMethod::Md5) };
    let mut block = written(&plan, 4096, 0, SEED);
    block[1500] ^= 1;
    block[3500] ^= 1;
    let found = findings(&plan, &mut block, 0, None);
    assert_eq!(
        found.iter().map(|finding| (finding.at, finding.len)).collect::<Vec<_>>(),
        [(1024, 1024), (3072, 1024)]
    );
    assert_eq!(findings(&VerifyPlan { fatal: true, ..plan }, &mut block, 0, None).len(), 1);
}

#[test]
fn the_expected_block_is_the_written_one() {
    // Without a header, and without a pattern, nothing tells the data.
    for method in methods().filter(|method| *method != VerifyMethod::Null) {
        let plan = VerifyPlan { interval: 1024, offset: 200, ..plan(method) };
        let block = written(&plan, 4096, 4096, SEED);
        let mut received = block.clone();
        received[1000] ^= 1;
        let expected = BlockWriter::new(&plan, None, 1).expected(&received, 4096, None);
        assert!(expected == block, "{}", method.name());
    }
}

#[test]
fn writes_have_different_seeds() {
    let generation = Generation::new(7);
    let mut seeds: Vec<u64> = (0..2)
        .flat_map(|file| (0..64).map(move |block| (file, block)))
        .flat_map(|(file, block)| (0..4).map(move |pass| generation.seed(file, block * 4096, pass)))
        .collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 2 * 64 * 4);
}

proptest! {
    #[test]
    fn blocks_of_any_length_are_accepted_and_any_bytes_are_checked_without_panic(
        method in 0..VerifyMethod::NAMED.len(),
        (len, parts) in (168..2000usize, 1..5usize),
        has_interval in any::<bool>(),
        offset in 0..600u32,
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let interval = if has_interval { len as u32 } else { 0 };
        let plan = VerifyPlan { interval, offset, ..plan(VerifyMethod::NAMED[method].1) };
        let mut block = written(&plan, len * parts, 512, SEED);
        prop_assert_eq!(findings(&plan, &mut block, 512, Some(SEED)), []);
        let mut bytes = bytes;
        findings(&plan, &mut bytes, 0, None);
    }
}
