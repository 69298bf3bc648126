//! The part of PMIx's binary interface that is used: functions, structs and constants as its standard (version 2 and later) defines
//! them.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use crate::library::{Library, LibraryError, library_functions};

/// The names of the library; versions 2 to 6 of the implementation have the same.
const NAMES: &[&CStr] = &[c"libpmix.so.2", c"libpmix.so"];
/// The rank that stands for all of a namespace.
pub(super) const ANY_RANK: u32 = u32::MAX - 1;
/// The key of the number of processes of a job.
pub(super) const JOB_SIZE: &CStr = c"pmix.job.size";
/// Whether a fence exchanges values. Slurm's fence is a barrier only where it does.
const COLLECT: &CStr = c"pmix.collect";
/// Whether a key that the server does not have fails at once.
const IMMEDIATE: &CStr = c"pmix.immediate";

/// The scope of a value that all processes see.
const GLOBAL: u8 = 3;
/// Types of values.
const BOOL: u16 = 1;
const STRING: u16 = 3;
const UINT32: u16 = 14;

/// A process: its namespace, that is its job, and its rank.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Proc {
    namespace: [c_char; 256],
    rank: u32,
}

impl Proc {
    pub(super) const fn rank(&self) -> u32 {
        self.rank
    }

    /// The process of another rank of the same job.
    pub(super) const fn of_rank(self, rank: u32) -> Proc {
        Proc { rank, ..self }
    }
}

impl fmt::Debug for Proc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name: Vec<u8> = self.namespace.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
        write!(f, "{}:{}", String::from_utf8_lossy(&name), self.rank)
    }
}

/// The data of a value; the largest member of the library's union has three words.
#[repr(C)]
#[derive(Clone, Copy)]
union Data {
    flag: bool,
    string: *mut c_char,
    uint32: u32,
    words: [usize; 3],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawValue {
    of_type: u16,
    data: Data,
}

/// An instruction for a call.
#[repr(C)]
struct Info {
    key: [c_char; 512],
    flags: u32,
    value: RawValue,
}

// The sizes on 64-bit systems. Never more than one instruction goes to a call, and values are only read at their beginning, so that
// the shorter union of version 2 does no harm.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<Proc>() == 260 && align_of::<Proc>() == 4);
    assert!(size_of::<RawValue>() == 32 && align_of::<RawValue>() == 8);
    assert!(size_of::<Info>() == 552 && std::mem::offset_of!(Info, value) == 520);
};

impl Info {
    /// An instruction that is on.
    fn on(name: &CStr) -> Info {
        let mut key = [0; 512];
        for (to, from) in key.iter_mut().zip(name.to_bytes()) {
            *to = *from as c_char;
        }
        let mut data = Data { words: [0; 3] };
        data.flag = true;
        Info { key, flags: 0, value: RawValue { of_type: BOOL, data } }
    }
}

/// What a key has.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A text.
    Text(String),
    /// A number of 32 bits.
    Number(u32),
    /// A value of another type, by the number of the type.
    Other(u16),
}

/// The library's number for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status(c_int);

impl Status {
    /// True where a key has no value.
    pub(super) const fn is_not_found(self) -> bool {
        const NOT_FOUND: c_int = -46;
        self.0 == NOT_FOUND
    }

    const fn check(code: c_int) -> Result<(), Status> {
        if code == 0 { Ok(()) } else { Err(Status(code)) }
    }
}

library_functions! { Loaded:
    init = c"PMIx_Init" fn(*mut Proc, *mut Info, usize) -> c_int;
    put = c"PMIx_Put" fn(u8, *const c_char, *mut RawValue) -> c_int;
    commit = c"PMIx_Commit" fn() -> c_int;
    fence = c"PMIx_Fence" fn(*const Proc, usize, *const Info, usize) -> c_int;
    get = c"PMIx_Get" fn(*const Proc, *const c_char, *const Info, usize, *mut *mut RawValue) -> c_int;
    abort = c"PMIx_Abort" fn(c_int, *const c_char, *mut Proc, usize) -> c_int;
    finalize = c"PMIx_Finalize" fn(*const Info, usize) -> c_int;
    error_string = c"PMIx_Error_string" fn(c_int) -> *const c_char;
}

/// The library's functions. They may be called from any thread.
pub(super) struct Functions(Loaded);

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Functions")
    }
}

/// The functions, loaded once.
pub(super) fn functions() -> Result<&'static Functions, LibraryError> {
    static LOADED: OnceLock<Result<Functions, LibraryError>> = OnceLock::new();
    let load = || Library::load(NAMES).and_then(|library| Loaded::load(&library)).map(Functions);
    LOADED.get_or_init(load).as_ref().map_err(Clone::clone)
}

impl Functions {
    /// Joins the job; returns the place of this process.
    pub(super) fn init(&self) -> Result<Proc, Status> {
        let mut place = Proc { namespace: [0; 256], rank: 0 };
        // SAFETY: the place outlives the call, which needs no instruction.
        Status::check(unsafe { (self.0.init)(&raw mut place, null_mut(), 0) })?;
        Ok(place)
    }

    /// Sets a value of this process, which the next commit passes on.
    pub(super) fn put(&self, key: &CStr, value: &CString) -> Result<(), Status> {
        let data = Data { string: value.as_ptr().cast_mut() };
        let mut value = RawValue { of_type: STRING, data };
        // SAFETY: key and value outlive the call, which copies them; it writes to neither.
        Status::check(unsafe { (self.0.put)(GLOBAL, key.as_ptr(), &raw mut value) })
    }

    /// Passes the values of this process to its server.
    pub(super) fn commit(&self) -> Result<(), Status> {
        // SAFETY: the function needs no argument.
        Status::check(unsafe { (self.0.commit)() })
    }

    /// Waits for all processes of the job, and exchanges the values.
    pub(super) fn fence(&self) -> Result<(), Status> {
        let collect = Info::on(COLLECT);
        // SAFETY: no process means all of the job; the instruction outlives the call.
        Status::check(unsafe { (self.0.fence)(null(), 0, &raw const collect, 1) })
    }

    /// The value of a key that a process has put.
    pub(super) fn get(&self, of: &Proc, key: &CStr) -> Result<Value, Status> {
        let immediate = Info::on(IMMEDIATE);
        let mut found: *mut RawValue = null_mut();
        // SAFETY: process, key and instruction outlive the call, which stores a pointer to a new value.
        Status::check(unsafe { (self.0.get)(of, key.as_ptr(), &raw const immediate, 1, &raw mut found) })?;
        // SAFETY: the call has succeeded.
        Ok(unsafe { take(found) })
    }

    /// Asks the server to end all processes of the job.
    pub(super) fn abort(&self, code: c_int, message: &CStr) -> Result<(), Status> {
        // SAFETY: the text outlives the call; no process means all.
        Status::check(unsafe { (self.0.abort)(code, message.as_ptr(), null_mut(), 0) })
    }

    /// Leaves the job.
    pub(super) fn finalize(&self) -> Result<(), Status> {
        // SAFETY: the call needs no instruction.
        Status::check(unsafe { (self.0.finalize)(null(), 0) })
    }

    /// The library's name of a failure.
    pub(super) fn describe(&self, status: Status) -> String {
        // SAFETY: the function knows or refuses any number.
        let text = unsafe { (self.0.error_string)(status.0) };
        if text.is_null() {
            return format!("status {}", status.0);
        }
        // SAFETY: the text is a constant of the library.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        format!("{text} ({})", status.0)
    }
}

/// What a new value of the library holds; frees it.
///
/// # Safety
/// `value` is null, or belongs to the caller, as does its text.
unsafe fn take(value: *mut RawValue) -> Value {
    if value.is_null() {
        return Value::Other(0);
    }
    // SAFETY: the library has made it, with its type.
    let RawValue { of_type, data } = unsafe { *value };
    // SAFETY: the library takes its memory from the C library, and leaves it to the caller.
    unsafe { libc::free(value.cast::<c_void>()) };
    match of_type {
        // SAFETY: the type says what the data is.
        UINT32 => Value::Number(unsafe { data.uint32 }),
        // SAFETY: as above; the text belongs to the caller, too.
        STRING => Value::Text(unsafe { take_text(data.string) }),
        other => Value::Other(other),
    }
}

/// # Safety
/// `text` is null, or a C string that belongs to the caller.
unsafe fn take_text(text: *mut c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    let owned = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: the caller's promise.
    unsafe { libc::free(text.cast::<c_void>()) };
    owned
}

#[cfg(test)]
pub(super) mod tests;
