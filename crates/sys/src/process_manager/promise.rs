//! The number of processes that launchers announce in the environment, to tell a job of one process from many that do not find
//! each other.

/// Variables of launchers that started this process, with the number of processes of its job.
const OF_PROCESSES: &[&str] = &["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];
/// The variable of an allocation: only a promise where no launcher runs in it.
const OF_ALLOCATION: &str = "SLURM_NTASKS";

/// The largest number of processes that a launcher announces in the environment, with its variable; `None` where none does.
/// `variable` looks up the environment.
///
/// A job of one process where this says more is one of several that did not find each other: they would all measure alone, and each
/// would report as if it were the whole.
pub fn promised_size(variable: &dyn Fn(&str) -> Option<String>) -> Option<(&'static str, u32)> {
    let number = |name: &'static str| Some((name, variable(name)?.trim().parse::<u32>().ok()?));
    let of_processes = OF_PROCESSES.iter().filter_map(|name| number(name)).max_by_key(|(_, size)| *size);
    of_processes.or_else(|| number(OF_ALLOCATION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_size_of_a_launcher_is_promised() {
        let check = |set: &[(&str, &str)], expected| {
            let variable = |name: &str| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(promised_size(&variable), expected, "{set:?}");
        };
        check(&[], None);
        check(&[("PMI_SIZE", "x")], None);
        check(&[("SLURM_NTASKS", "64")], Some(("SLURM_NTASKS", 64)));
        check(&[("OMPI_COMM_WORLD_SIZE", "6"), ("PMI_SIZE", "1")], Some(("OMPI_COMM_WORLD_SIZE", 6)));
        // `srun -n 4 mpiexec -n 1`: four jobs of one process each.
        check(&[("PMI_SIZE", "1"), ("SLURM_STEP_NUM_TASKS", "4")], Some(("SLURM_STEP_NUM_TASKS", 4)));
        // `mpiexec -n 1` and `srun -n 1` in an allocation for more are meant so.
        check(&[("PMI_SIZE", "1"), ("SLURM_NTASKS", "64")], Some(("PMI_SIZE", 1)));
        check(&[("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_NTASKS", "64")], Some(("SLURM_STEP_NUM_TASKS", 1)));
    }
}
