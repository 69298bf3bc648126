//! Blocks with headers, as they are read from a device: `verify=`.

use fathom_model::plan::{FillPattern, VerifyMethod, VerifyPlan};
use fathom_workload::verify::{BlockCheck, BlockWriter, Header};

/// Bytes of the input before the block: method, interval, offset, and whether there is a pattern.
const SETTINGS: usize = 6;

/// Checks any bytes as a block, and that a block of the same settings is accepted as it was written.
pub fn check(data: &[u8]) {
    let Some((settings, block)) = data.split_at_checked(SETTINGS) else { return };
    let methods = VerifyMethod::NAMED;
    let (_, method) = methods[usize::from(settings[0]) % methods.len()];
    let word = |at: usize| u32::from(u16::from_le_bytes([settings[at], settings[at + 1]]));
    let has_pattern = settings[5] % 2 == 1 || method.compares_pattern() && method != VerifyMethod::Meta;
    let plan = VerifyPlan {
        pattern: has_pattern.then(|| FillPattern {
            bytes: b"123456789".to_vec(),
            offsets: vec![1],
            interval: 0,
        }),
        interval: word(1),
        offset: word(3),
        fatal: settings[5] & 2 != 0,
        ..VerifyPlan::new(method)
    };
    if let Ok(header) = Header::fields(block)
        && Header::check(block).is_ok()
    {
        assert_eq!(header.to_bytes(), block[..Header::LEN], "a header is written as it was read");
    }
    let mut checker = BlockCheck::new(&plan, block.len(), false);
    let (mut read, mut findings) = (block.to_vec(), Vec::new());
    checker.check(&mut read, 4096, Some(7), &mut findings);
    assert_eq!(read, block, "the check changes nothing");
    let mut writer = BlockWriter::new(&plan, None, 1);
    let expected = writer.expected(block, 4096, None);
    assert_eq!(expected.len(), block.len());
    let divides = plan.interval > 0 && (plan.interval as usize) < block.len();
    let part = if divides && block.len().is_multiple_of(plan.interval as usize) {
        plan.interval as usize
    } else {
        block.len()
    };
    if part < method.header_len() && method.has_header() {
        return;
    }
    let mut written = block.to_vec();
    writer.write(&mut written, 4096, 7);
    findings.clear();
    checker.check(&mut written, 4096, Some(7), &mut findings);
    assert_eq!(findings, [], "a block is accepted as it was written");
}
