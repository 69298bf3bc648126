use super::*;

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(50);

#[test]
fn a_call_that_hangs_is_left_behind() {
    let mut pmix = Pmix::with(abi::tests::functions(), LONG).unwrap();
    let JobPlace { interface, rank, size, .. } = pmix.place();
    assert_eq!((interface, rank, size), ("PMIx", 2, 6));
    pmix.put("key-2", "value", LONG).unwrap();
    assert_eq!(pmix.get(1, "key-1", LONG).unwrap(), "value of rank 1");
    let missing = pmix.get(1, "nothing", LONG).unwrap_err();
    assert!(matches!(missing, ProcessManagerError::NoValue { rank: 1, .. }), "{missing}");
    let other = pmix.get(1, "number", LONG).unwrap_err();
    assert_eq!(other.to_string(), "the launcher answered 'PMIx_Get' with 'Number(6)'");
    let failed = pmix.finish(LONG).unwrap_err();
    assert_eq!(failed.to_string(), "the launcher answered 'PMIx_Finalize' with 'FAILED (-1)'");

    let late = pmix.fence(SHORT).unwrap_err();
    assert!(matches!(late, ProcessManagerError::Deadline { asked: "fence", .. }), "{late}");
    // Another call would wait behind it.
    let next = pmix.put("key", "value", LONG).unwrap_err();
    assert!(matches!(next, ProcessManagerError::Deadline { asked: "PMIx_Put", .. }), "{next}");
    assert_eq!(abi::tests::aborted(), None);
    pmix.abort(75, "rank 1 is missing");
    assert_eq!(abi::tests::aborted(), Some(75));
}

#[test]
fn texts_are_checked_as_for_other_interfaces() {
    let mut pmix = Pmix::with(abi::tests::functions(), LONG).unwrap();
    for text in ["", "a b", "a;b", "a\0b", &"x".repeat(LIMITS.value + 1)] {
        let refused = pmix.put("key", text, LONG).unwrap_err();
        assert!(matches!(refused, ProcessManagerError::Text { what: "value", .. }), "{text}");
    }
}
