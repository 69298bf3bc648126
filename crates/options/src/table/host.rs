//! Options about users, control groups and the machine.

use fathom_model::OptionValueKind::Text;
use fathom_model::plan::ControlGroupPlan;

use super::{JobOption, count, int, row, set, switch};
use crate::job_options::JobOptions;

pub(super) const ROWS: &[JobOption] = &[
    count("uid", 0, |options, count| options.plan.threads.host.user = Some(count)).doc(
        "User, by number, that the clones act as from their commands on; files that it must not open \
              end the job.",
    ),
    count("gid", 0, |options, count| options.plan.threads.host.group = Some(count))
        .doc("Group, by number, that the clones act as."),
    row("cgroup", Text, |options, text| {
        let name = text.trim().trim_matches('/');
        if name.is_empty() || name.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err("the name of a control group is needed".to_owned());
        }
        group(options).name = name.to_owned();
        Ok(())
    })
    .doc(
        "Control group for I/O that the clones join, made if it is missing; with version 2 the whole \
              process joins it.",
    ),
    int("cgroup_weight", 100..=1000, |options, weight| group(options).weight = Some(weight as u32)).doc(
        "Weight of the control group for I/O, from 100 to 1000; a job is refused where the kernel \
              gives groups no weight.",
    ),
    switch("cgroup_nodelete", |options, kept| group(options).is_kept = kept)
        .doc("Leave the control group in place at the end."),
    row("ioscheduler", Text, |options, text| match text.trim() {
        "" => Err("the name of a scheduler is needed".to_owned()),
        name if name.contains(char::is_whitespace) => Err("one scheduler is needed".to_owned()),
        name => set(&mut options.plan.threads.host.scheduler, Ok(name.to_owned())),
    })
    .doc(
        "I/O scheduler of the devices under the files, chosen before the start and not restored \
              afterwards.",
    ),
    count("job_start_clock_id", 0, |options, count| options.plan.threads.host.start_clock = Some(count))
        .default("0")
        .doc("Number of the clock that job_start in the JSON report is a reading of; 0 is the time of day."),
];

fn group(options: &mut JobOptions) -> &mut ControlGroupPlan {
    options.plan.threads.host.control_group.get_or_insert_default()
}
