//! Options of fio's command that are refused.

use super::OptionArity;

/// fio's options of the command that are refused, with what to do instead.
pub(crate) const UNSUPPORTED: &[(&str, OptionArity, &str)] = &[
    ("client", OptionArity::Value("HOST"), "start it with srun, mpiexec or mpirun, and add --fleet"),
    ("cpuclock-test", OptionArity::Nothing, "omit it: the clock is the monotonic one of the kernel"),
    ("crctest", OptionArity::MaybeValue("NAME"), "measure a job with verify= and without, on ioengine=null"),
    ("daemonize", OptionArity::Value("FILE"), "start it with nohup or systemd-run"),
    ("latency-log", OptionArity::MaybeValue("NAME"), "use --output-format=json"),
    ("merge-blktrace-only", OptionArity::Nothing, "replay each trace with read_iolog, in a job of its own"),
    ("remote-config", OptionArity::Value("FILE"), "start it on each machine"),
    ("server", OptionArity::MaybeValue("ARGS"), "start it with srun, mpiexec or mpirun, and add --fleet"),
    ("trigger-remote", OptionArity::Value("COMMAND"), "use --trigger on each machine"),
];
