//! libFuzzer's entry to [`fathom_fuzz::job_file`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fathom_fuzz::job_file::check(data));
