use fathom_model::plan::{Mix, VerifyMethod, VerifyPlan, VerifyTrim};

use super::*;
use crate::drive::tests::spec as spec_of;
use crate::worker::VerifySpec;

const BLOCKS: u64 = 20;

fn spec(change: impl FnOnce(&mut WorkerSpec, &mut VerifySpec)) -> WorkerSpec {
    let mut spec = spec_of(Mix::Write, 1, BLOCKS);
    let mut verify = VerifySpec {
        plan: VerifyPlan::new(VerifyMethod::Crc32c),
        names: vec!["f".to_owned()],
        passes: Some(1),
        shares_files: false,
        worker: 1,
        job: ("t".to_owned(), 0),
        limit: None,
    };
    spec.source.pattern.random = true;
    change(&mut spec, &mut verify);
    spec.verify = Some(verify);
    spec
}

/// The requests until the end, with the seed that each read expects; waits settle at once.
fn requests(spec: &WorkerSpec) -> Vec<(Request, Option<u64>)> {
    let mut source = Source::new(&spec.source);
    let mut back = ReadBack::new(spec, &source).expect("the job is read back");
    let mut made = Vec::new();
    while made.len() < 10_000 {
        let next =
            back.next(|| source.next_request().map_or(Next::Done, |request| Next::Issue((request, None))));
        match next {
            Next::Issue((request, _)) => made.push((request, back.seed_of(&request))),
            Next::Pause => _ = back.settle(&mut source),
            Next::Done => return made,
            Next::NotBefore(_) => unreachable!("the source has no times"),
        }
    }
    made
}

fn ops(made: &[(Request, Option<u64>)]) -> String {
    let letter = |op: Op| match op {
        Op::Write => 'w',
        Op::Trim => 't',
        _ => 'r',
    };
    made.iter().map(|(request, _)| letter(request.op)).collect()
}

#[test]
fn written_blocks_are_trimmed_between_the_writes() {
    let trims = |percent, backlog, batch| {
        let plan = VerifyTrim { percent, backlog, batch, are_zeroes: true };
        move |_: &mut WorkerSpec, verify: &mut VerifySpec| verify.plan.trims = Some(plan)
    };
    let part = BLOCKS as usize;
    let made = requests(&spec(trims(100, 5, 5)));
    assert_eq!(ops(&made), format!("{}{}", "wwwwwttttt".repeat(part / 5), "r".repeat(part)));
    for batch in made[..2 * part].chunks(10) {
        let offsets = |requests: &[(Request, Option<u64>)]| -> Vec<u64> {
            requests.iter().map(|(request, _)| request.offset).collect()
        };
        assert_eq!(offsets(&batch[..5]), offsets(&batch[5..]));
    }
    let fewer = ops(&requests(&spec(trims(100, 10, 2))));
    assert_eq!(fewer, format!("{}{}", "wwwwwwwwwwtt".repeat(part / 10), "r".repeat(part)));
    let half = ops(&requests(&spec(trims(50, 1, 1))));
    let trimmed = half.matches('t').count();
    assert!((part / 4..part * 3 / 4).contains(&trimmed), "{half}");
    let unread = ops(&requests(&spec(|spec, verify| {
        trims(100, 1, 1)(spec, verify);
        verify.plan.reads_back = false;
    })));
    assert_eq!(unread, "wt".repeat(part));
}

#[test]
fn a_pass_is_read_back_in_the_order_of_its_writes() {
    let made = requests(&spec(|_, verify| verify.passes = Some(2)));
    let part = BLOCKS as usize;
    let expected = format!("{0}{1}{0}{1}", "w".repeat(part), "r".repeat(part));
    assert_eq!(ops(&made), expected);
    for pass in made.chunks(2 * part) {
        let offsets = |requests: &[(Request, Option<u64>)]| -> Vec<u64> {
            requests.iter().map(|(request, _)| request.offset).collect()
        };
        assert_eq!(offsets(&pass[..part]), offsets(&pass[part..]));
    }
    let seed_at = |index: usize| made[index].1.expect("it is known");
    assert_ne!(seed_at(part), seed_at(3 * part), "each pass has its own seeds");
}

#[test]
fn a_backlog_is_read_back_in_between() {
    let backlog = |blocks, batch| {
        requests(&spec(|_, verify| verify.plan.backlog = Some(VerifyBacklog { blocks, batch })))
    };
    assert_eq!(ops(&backlog(8, 8)), "wwwwwwwwrrrrrrrrwwwwwwwwrrrrrrrrwwwwrrrr");
    assert_eq!(ops(&backlog(8, 4)).matches('r').count(), BLOCKS as usize);
}

#[test]
fn only_the_last_write_of_a_block_is_read_back() {
    let spec = spec(|spec, _| spec.source.random_map = false);
    let made = requests(&spec);
    let writes = made.iter().filter(|(request, _)| request.op == Op::Write).count();
    let mut read: Vec<u64> = made
        .iter()
        .filter(|(request, _)| request.op == Op::Read)
        .map(|(request, _)| request.offset)
        .collect();
    let count = read.len();
    read.dedup();
    assert_eq!((writes, count), (BLOCKS as usize, read.len()));
    let generation = Generation::new(spec.source.seed);
    for (read, seed) in made.iter().filter(|(request, _)| request.op == Op::Read) {
        let mut writes =
            made.iter().map(|(request, _)| request).filter(|request| request.op == Op::Write).enumerate();
        let last = writes
            .by_ref()
            .filter(|(_, write)| write.offset == read.offset)
            .last()
            .map(|(number, _)| number)
            .expect("it was written");
        assert_eq!(*seed, Some(generation.seed(0, read.offset, last as u64)));
    }
}

#[test]
fn nothing_is_read_back_where_no_end_of_writing_is_known() {
    let mut spec = spec(|_, verify| verify.passes = None);
    spec.source.loops = None;
    assert!(requests(&spec).iter().all(|(request, _)| request.op == Op::Write));
}

#[test]
fn only_reading_back_writes_nothing() {
    let made = requests(&spec(|_, verify| verify.plan.only = true));
    assert_eq!(ops(&made), "r".repeat(BLOCKS as usize));
}

#[test]
fn as_many_writes_are_checked_as_were_complete() {
    let made = requests(&spec(|_, verify| {
        verify.plan.only = true;
        verify.limit = Some(7);
    }));
    assert_eq!(ops(&made), "r".repeat(7));
}

#[test]
fn failed_writes_are_not_read_back() {
    let spec = spec(|_, _| {});
    let mut source = Source::new(&spec.source);
    let mut back = ReadBack::new(&spec, &source).expect("the job is read back");
    let mut read = 0;
    let mut first = None;
    loop {
        let next =
            back.next(|| source.next_request().map_or(Next::Done, |request| Next::Issue((request, None))));
        match next {
            Next::Issue((request, _)) if request.op == Op::Write => {
                if first.is_none() {
                    back.forget(&request);
                    first = Some(request.offset);
                }
            }
            Next::Issue((request, _)) => {
                assert_ne!(Some(request.offset), first);
                read += 1;
            }
            Next::Pause => _ = back.settle(&mut source),
            Next::Done => break,
            Next::NotBefore(_) => unreachable!("the source has no times"),
        }
    }
    assert_eq!(read, BLOCKS - 1);
}
