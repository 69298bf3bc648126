//! A library for tests: rank 2 of 6, whose fence never ends.

use std::sync::atomic::{AtomicI32, Ordering};

use super::*;

static ABORTED: AtomicI32 = AtomicI32::new(0);

/// The exit code of the abort, if there was one.
pub(in super::super) fn aborted() -> Option<i32> {
    Some(ABORTED.load(Ordering::SeqCst)).filter(|code| *code != 0)
}

pub(in super::super) fn functions() -> &'static Functions {
    static FUNCTIONS: Functions =
        Functions(Loaded { init, put, commit, fence, get, abort, finalize, error_string });
    &FUNCTIONS
}

unsafe extern "C" fn init(place: *mut Proc, _: *mut Info, _: usize) -> c_int {
    let mut namespace = [0; 256];
    namespace[0] = b'j' as c_char;
    // SAFETY: the caller passes a place.
    unsafe { *place = Proc { namespace, rank: 2 } };
    0
}

unsafe extern "C" fn put(scope: u8, key: *const c_char, value: *mut RawValue) -> c_int {
    // SAFETY: the caller passes a C string, and a value with one.
    let (key, value, of_type) =
        unsafe { (CStr::from_ptr(key), CStr::from_ptr((*value).data.string), (*value).of_type) };
    assert_eq!((scope, key, value, of_type), (GLOBAL, c"key-2", c"value", STRING));
    0
}

unsafe extern "C" fn commit() -> c_int {
    0
}

unsafe extern "C" fn fence(_: *const Proc, processes: usize, info: *const Info, infos: usize) -> c_int {
    // SAFETY: the caller passes an instruction.
    let (key, flag) = unsafe { (CStr::from_ptr((*info).key.as_ptr()), (*info).value.data.flag) };
    assert_eq!((processes, key, flag, infos), (0, c"pmix.collect", true, 1));
    loop {
        std::thread::park();
    }
}

unsafe extern "C" fn get(
    of: *const Proc,
    key: *const c_char,
    _: *const Info,
    _: usize,
    found: *mut *mut RawValue,
) -> c_int {
    // SAFETY: the caller passes a process and a C string.
    let (rank, key) = unsafe { ((*of).rank, CStr::from_ptr(key).to_str().unwrap()) };
    let mut data = Data { words: [0; 3] };
    let of_type = match (rank, key) {
        (ANY_RANK, "pmix.job.size") | (_, "number") => {
            data.uint32 = 6;
            UINT32
        }
        (rank, "key-1") => {
            let text = CString::new(format!("value of rank {rank}")).unwrap();
            // SAFETY: the text is a C string.
            data.string = unsafe { libc::strdup(text.as_ptr()) };
            STRING
        }
        _ => return -46,
    };
    // SAFETY: the memory is as large as the value, and the caller passes a pointer for it.
    unsafe {
        let value = libc::malloc(size_of::<RawValue>()).cast::<RawValue>();
        value.write(RawValue { of_type, data });
        *found = value;
    }
    0
}

unsafe extern "C" fn abort(code: c_int, message: *const c_char, _: *mut Proc, _: usize) -> c_int {
    // SAFETY: the caller passes a C string.
    assert_eq!(unsafe { CStr::from_ptr(message) }, c"rank 1 is missing");
    ABORTED.store(code, Ordering::SeqCst);
    0
}

unsafe extern "C" fn finalize(_: *const Info, _: usize) -> c_int {
    -1
}

unsafe extern "C" fn error_string(_: c_int) -> *const c_char {
    c"FAILED".as_ptr()
}
