//! The place of this process in a parallel job, from the environment that its launcher sets.

use fathom_record::LaunchRecord;

/// The place of this process in its job; `None` where nothing started it as part of one. `variable` looks up the environment.
pub(crate) fn launch(variable: impl Fn(&str) -> Option<String>) -> Option<LaunchRecord> {
    let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
    let job = |launcher: &str, rank: u32, ranks: Option<u32>| {
        Some(LaunchRecord { launcher: launcher.to_owned(), rank, ranks })
    };
    // A batch script has SLURM_PROCID too; only `srun` sets the number of processes of its step.
    let step = number("SLURM_STEP_NUM_TASKS").filter(|tasks| *tasks > 1);
    if let (Some(rank), Some(tasks)) = (number("SLURM_PROCID"), step) {
        return job("slurm", rank, Some(tasks));
    }
    if let Some(task) = number("SLURM_ARRAY_TASK_ID") {
        let first = number("SLURM_ARRAY_TASK_MIN").unwrap_or(0);
        let step = number("SLURM_ARRAY_TASK_STEP").unwrap_or(1).max(1);
        return job("slurm-array", task.saturating_sub(first) / step, number("SLURM_ARRAY_TASK_COUNT"));
    }
    if let (Some(rank), Some(ranks)) = (number("OMPI_COMM_WORLD_RANK"), number("OMPI_COMM_WORLD_SIZE")) {
        return job("open-mpi", rank, Some(ranks));
    }
    if let (Some(rank), Some(ranks)) = (number("PMI_RANK"), number("PMI_SIZE")) {
        return job("pmi", rank, Some(ranks));
    }
    // An Indexed Job does not tell its pods how many they are.
    number("JOB_COMPLETION_INDEX").and_then(|index| job("kubernetes", index, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(set: &[(&str, &str)]) -> Option<(String, u32, Option<u32>)> {
        let look_up =
            |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        launch(look_up).map(|launch| (launch.launcher, launch.rank, launch.ranks))
    }

    #[test]
    fn launchers_tell_the_rank() {
        let check = |set: &[(&str, &str)], expected: Option<(&str, u32, Option<u32>)>| {
            let expected = expected.map(|(launcher, rank, ranks)| (launcher.to_owned(), rank, ranks));
            assert_eq!(found(set), expected, "{set:?}");
        };
        check(&[], None);
        let step = [("SLURM_PROCID", "3"), ("SLURM_STEP_NUM_TASKS", "64"), ("PMI_RANK", "3")];
        check(&step, Some(("slurm", 3, Some(64))));
        // A batch script that `sbatch` runs once.
        check(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "64")], None);
        let array = [
            ("SLURM_PROCID", "0"),
            ("SLURM_ARRAY_TASK_ID", "14"),
            ("SLURM_ARRAY_TASK_MIN", "10"),
            ("SLURM_ARRAY_TASK_STEP", "2"),
            ("SLURM_ARRAY_TASK_COUNT", "8"),
        ];
        check(&array, Some(("slurm-array", 2, Some(8))));
        let open_mpi = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")];
        check(&open_mpi, Some(("open-mpi", 1, Some(2))));
        check(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")], Some(("pmi", 0, Some(1))));
        check(&[("JOB_COMPLETION_INDEX", "7")], Some(("kubernetes", 7, None)));
        check(&[("JOB_COMPLETION_INDEX", "seven")], None);
    }
}
