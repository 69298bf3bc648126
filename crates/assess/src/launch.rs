//! The place of this process in a parallel job, from the environment that its launcher sets.

use fathom_record::{LaunchRecord, RankNumbers};

/// The place of this process in its job; `None` where nothing started it as part of one. `variable` looks up the environment.
pub(crate) fn launch(variable: impl Fn(&str) -> Option<String>) -> Option<LaunchRecord> {
    let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
    let job = |launcher: &str, rank: u32, ranks: Option<u32>| {
        Some(LaunchRecord { launcher: launcher.to_owned(), rank, ranks, ..LaunchRecord::default() })
    };
    let pair = |rank: &str, ranks: &str| Some((number(rank)?, number(ranks)?));
    // A launcher of MPI may start its daemons by `srun`, whose variables all their processes inherit.
    let mpi = [
        ("open-mpi", pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")),
        ("pmi", pair("PMI_RANK", "PMI_SIZE")),
    ];
    let mpi = || mpi.iter().find_map(|(launcher, place)| place.map(|(rank, ranks)| (*launcher, rank, ranks)));
    // One of a single process says nothing of the job around it.
    if let Some((launcher, rank, ranks)) = mpi().filter(|(_, _, ranks)| *ranks > 1) {
        return job(launcher, rank, Some(ranks));
    }
    // PMIx does not tell how many they are, and `srun` does, which has it too.
    let is_of_slurm = || variable("PMIX_NAMESPACE").is_some_and(|name| name.starts_with("slurm."));
    if let Some(rank) = number("PMIX_RANK").filter(|_| !is_of_slurm()) {
        return job("pmix", rank, None);
    }
    // A batch script has SLURM_PROCID too; only `srun` sets the number of processes of its step.
    let step = pair("SLURM_PROCID", "SLURM_STEP_NUM_TASKS").filter(|(_, tasks)| *tasks > 1);
    if let Some((rank, tasks)) = step {
        return job("slurm", rank, Some(tasks));
    }
    if let Some(task) = number("SLURM_ARRAY_TASK_ID") {
        let range = array(number);
        let numbers = range.map_or(RankNumbers::UNKNOWN, |(numbers, _)| numbers);
        return job("slurm-array", task, range.map(|(_, count)| count))
            .map(|launch| LaunchRecord { numbers, ..launch });
    }
    if let Some((launcher, rank, ranks)) = mpi() {
        return job(launcher, rank, Some(ranks));
    }
    // An Indexed Job does not tell its pods how many they are.
    number("JOB_COMPLETION_INDEX").and_then(|index| job("kubernetes", index, None))
}

/// The numbers of the tasks of a Slurm array and their count; `None` of a list, which no variable tells.
fn array(number: impl Fn(&str) -> Option<u32>) -> Option<(RankNumbers, u32)> {
    let [first, last, count] =
        ["MIN", "MAX", "COUNT"].map(|name| number(&format!("SLURM_ARRAY_TASK_{name}")));
    let (first, count) = (first?, count?);
    let step = number("SLURM_ARRAY_TASK_STEP").unwrap_or(1).max(1);
    let places = last?.checked_sub(first)? / step;
    (places.checked_add(1)? == count).then_some((RankNumbers { first, step }, count))
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
        let open_mpi = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")];
        check(&open_mpi, Some(("open-mpi", 1, Some(2))));
        check(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")], Some(("pmi", 0, Some(1))));
        check(&[("JOB_COMPLETION_INDEX", "7")], Some(("kubernetes", 7, None)));
        check(&[("JOB_COMPLETION_INDEX", "seven")], None);
        check(&[("PMIX_RANK", "2"), ("PMIX_NAMESPACE", "prterun-h1-7@1")], Some(("pmix", 2, None)));
    }

    #[test]
    fn launchers_of_mpi_stand_before_the_step_of_their_daemons() {
        let rank = |set: &[(&str, &str)]| found(set).map(|(launcher, rank, _)| (launcher, rank));
        let check = |set: &[(&str, &str)], launcher: &str, expected: u32| {
            // The daemon of the second node is process 1 of two.
            let daemon = [("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "2")];
            assert_eq!(rank(&[&daemon[..], set].concat()), Some((launcher.to_owned(), expected)), "{set:?}");
        };
        check(&[("OMPI_COMM_WORLD_RANK", "5"), ("OMPI_COMM_WORLD_SIZE", "8")], "open-mpi", 5);
        check(&[("PMI_RANK", "6"), ("PMI_SIZE", "8")], "pmi", 6);
        check(&[("PMIX_RANK", "7"), ("PMIX_NAMESPACE", "prterun-h1-7@1")], "pmix", 7);
        check(&[("PMIX_RANK", "1"), ("PMIX_NAMESPACE", "slurm.pmix.12.0")], "slurm", 1);
        // A job of one process in a task of an array.
        let one = [("PMI_RANK", "0"), ("PMI_SIZE", "1"), ("SLURM_ARRAY_TASK_ID", "3")];
        assert_eq!(rank(&one), Some(("slurm-array".to_owned(), 3)));
    }

    #[test]
    fn tasks_of_an_array_keep_their_numbers() {
        let check =
            |task: &str, [first, last, step, count]: [&str; 4], expected: (u32, Option<u32>, RankNumbers)| {
                let set = [
                    ("SLURM_PROCID", "0"),
                    ("SLURM_ARRAY_TASK_ID", task),
                    ("SLURM_ARRAY_TASK_MIN", first),
                    ("SLURM_ARRAY_TASK_MAX", last),
                    ("SLURM_ARRAY_TASK_STEP", step),
                    ("SLURM_ARRAY_TASK_COUNT", count),
                ];
                let look_up =
                    |name: &str| set.iter().find(|known| known.0 == name).map(|known| known.1.to_owned());
                let LaunchRecord { launcher, rank, ranks, numbers, .. } = launch(look_up).unwrap();
                assert_eq!((launcher.as_str(), (rank, ranks, numbers)), ("slurm-array", expected), "{set:?}");
            };
        check("14", ["10", "25", "2", "8"], (14, Some(8), RankNumbers { first: 10, step: 2 }));
        check("4", ["1", "64", "1", "64"], (4, Some(64), RankNumbers { first: 1, step: 1 }));
        // --array=1,2,5
        check("5", ["1", "5", "1", "3"], (5, None, RankNumbers::UNKNOWN));
    }
}
