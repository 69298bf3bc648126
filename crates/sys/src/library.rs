//! Shared libraries that are loaded while the program runs: it starts without them, and names what is missing where one is needed.

use std::ffi::{CStr, c_void};
use std::mem::transmute_copy;
use std::ptr::NonNull;

/// True where the program can load shared libraries. One that is statically linked cannot: what it loads would bring a C library of its own
/// beside the one in the program, and glibc supports that only where both are of the same version.
pub const LOADS_LIBRARIES: bool = !cfg!(target_feature = "crt-static");

/// A library cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct LibraryError {
    /// The loader's message.
    pub cause: String,
}

const STATIC: &str = "this program is statically linked and loads no libraries";

/// Whether the loader finds and takes the library `name`, which stays loaded.
///
/// # Errors
/// It does not, for the reason that it gives.
pub fn find_library(name: &CStr) -> Result<(), LibraryError> {
    Library::load(&[name]).map(drop)
}

/// A loaded library. It stays loaded until the process ends, because its functions may be running in any thread.
pub(crate) struct Library {
    handle: NonNull<c_void>,
}

impl Library {
    /// Loads the first of `names` that the loader finds.
    pub(crate) fn load(names: &[&CStr]) -> Result<Library, LibraryError> {
        if !LOADS_LIBRARIES {
            return Err(LibraryError { cause: STATIC.to_owned() });
        }
        let mut first = None;
        for name in names {
            // SAFETY: the name is a C string; what the library runs when it is loaded is its own business, as with any
            // library that a program is linked with.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if let Some(handle) = NonNull::new(handle) {
                return Ok(Library { handle });
            }
            first.get_or_insert_with(last_error);
        }
        Err(first.unwrap_or_else(last_error))
    }

    /// The function `name`.
    ///
    /// # Safety
    /// `F` must be the type of a pointer to this function, as the library declares it.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &CStr) -> Result<F, LibraryError> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the handle is that of a loaded library, and the name a C string.
        let address = unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) };
        let address = NonNull::new(address).ok_or_else(last_error)?;
        // SAFETY: both have the size of a pointer, and the caller vouches for the type.
        Ok(unsafe { transmute_copy(&address) })
    }
}

fn last_error() -> LibraryError {
    // SAFETY: the text belongs to this thread until its next call of the loader.
    let text = unsafe { libc::dlerror() };
    let cause = match text.is_null() {
        true => "the loader gives no reason".to_owned(),
        // SAFETY: a text that is not null is a C string.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    };
    LibraryError { cause }
}

/// Declares a struct of functions of a library, with `load`, which finds them all.
macro_rules! library_functions {
    ($name:ident: $($field:ident = $symbol:literal fn($($argument:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        struct $name {
            $($field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl $name {
            fn load(library: &$crate::library::Library) -> Result<$name, $crate::library::LibraryError> {
                Ok($name {
                    // SAFETY: the types are those of the library's documentation.
                    $($field: unsafe { library.function($symbol)? },)*
                })
            }
        }
    };
}
pub(crate) use library_functions;

#[cfg(test)]
mod tests {
    use super::*;

    library_functions! { Clock:
        time = c"time" fn(*mut libc::time_t) -> libc::time_t;
    }

    #[test]
    fn a_static_program_loads_nothing() {
        let cause = Library::load(&[c"libc.so.6"]).err().map(|error| error.cause);
        assert_eq!(cause.as_deref(), (!LOADS_LIBRARIES).then_some(STATIC));
    }

    #[test]
    fn functions_of_a_library_are_called() {
        if !LOADS_LIBRARIES {
            return;
        }
        let library = Library::load(&[c"libno-such-library.so.1", c"libc.so.6"]).unwrap();
        let clock = Clock::load(&library).unwrap();
        // SAFETY: a null pointer is permitted.
        assert!(unsafe { (clock.time)(std::ptr::null_mut()) } > 1_700_000_000);
    }

    #[test]
    fn what_is_missing_is_named() {
        if !LOADS_LIBRARIES {
            return;
        }
        let cause = Library::load(&[c"libno-such-library.so.1"]).err().unwrap().cause;
        assert!(cause.contains("libno-such-library.so.1"), "{cause}");
        let library = Library::load(&[c"libc.so.6"]).unwrap();
        // SAFETY: there is no such function.
        let missing = unsafe { library.function::<unsafe extern "C" fn()>(c"no_such_function") };
        assert!(missing.unwrap_err().cause.contains("no_such_function"));
    }
}
