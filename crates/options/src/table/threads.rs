//! Options about the threads of a job: priorities, memory, CPUs, commands and waiting.

use fathom_model::OptionValueKind::{Choice, Int, Text};
use fathom_model::plan::{IoPriority, MemoryMode, MemoryPolicy};

use super::{ANY, JobOption, int, row, set, size};
use crate::job_options::JobOptions;
use crate::value;

const CLASSES: &[&str] = &["0", "1", "2", "3"];

pub(super) const ROWS: &[JobOption] = &[
    row("nice", Int, |options, text| {
        let nice = value::signed_integer(text)?;
        match i8::try_from(nice).ok().filter(|nice| (-20..=19).contains(nice)) {
            Some(nice) => set(&mut options.plan.threads.nice, Ok(nice)),
            None => Err(format!("value out of range: {nice} (-20 to 19)")),
        }
    })
    .default("0")
    .doc("CPU priority of the clones, from -20 to 19."),
    int("prio", 0..=7, |options, level| priority(options).level = level as u8)
        .doc("I/O priority of all requests within their class, from 0 (highest) to 7."),
    row("prioclass", Choice(CLASSES), |options, text| match text.trim() {
        text if CLASSES.contains(&text) => {
            value::integer(text).map(|class| priority(options).class = class as u8)
        }
        _ => Err(format!("valid values are {}", CLASSES.join(", "))),
    })
    .doc("I/O priority class: 1 realtime, 2 best effort, 3 idle, 0 none."),
    int("priohint", 0..=1023, |options, hint| priority(options).hint = hint as u16)
        .doc("I/O priority hint of all requests, from 0 to 1023."),
    size("lockmem", ANY, |options, bytes| options.plan.threads.locked_memory = bytes).default("0").doc(
        "Memory that each clone allocates and locks during its run, to simulate a machine with less \
              of it.",
    ),
    row("cpumask", Int, |options, text| match value::integer(text)? {
        0 => Err("it names no CPU".to_owned()),
        mask => set(&mut options.cpus_allowed, Ok((0..64).filter(|cpu| mask >> cpu & 1 == 1).collect())),
    })
    .doc(
        "CPUs that the clones may run on, as a bit mask; the last one given of cpumask and \
              cpus_allowed applies.",
    ),
    row("numa_cpu_nodes", Text, |options, text| {
        nodes(text).map(|nodes| options.plan.threads.cpu_nodes = nodes)
    })
    .doc("NUMA nodes whose CPUs the clones may run on, such as 0,2-3."),
    row("numa_mem_policy", Text, |options, text| {
        memory_policy(text).map(|policy| options.plan.threads.memory = Some(policy))
    })
    .doc(
        "NUMA nodes on which buffers are allocated: default, local, prefer:NODE, bind:NODES or \
              interleave:NODES.",
    ),
    row("exec_prerun", Text, |options, text| set(&mut options.plan.threads.prerun, command(text))).doc(
        "Shell command that each clone runs before its first request, with its output in \
              JOB.prerun.txt.",
    ),
    row("exec_postrun", Text, |options, text| set(&mut options.plan.threads.postrun, command(text))).doc(
        "Shell command that each clone runs after its last request, with its output in \
              JOB.postrun.txt.",
    ),
];

fn command(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("a command is needed".to_owned()) } else { Ok(text.to_owned()) }
}

fn priority(options: &mut JobOptions) -> &mut IoPriority {
    options.plan.threads.io_priority.get_or_insert_default()
}

fn nodes(text: &str) -> Result<Vec<u32>, String> {
    Ok(value::cpus(text)?.into_iter().map(|node| node as u32).collect())
}

fn memory_policy(text: &str) -> Result<MemoryPolicy, String> {
    let (word, list) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
    let (mode, needs_nodes) = match word {
        "default" => (MemoryMode::Default, false),
        "local" => (MemoryMode::Local, false),
        "prefer" => (MemoryMode::Prefer, true),
        "bind" => (MemoryMode::Bind, true),
        "interleave" => (MemoryMode::Interleave, true),
        _ => return Err("valid values are default, local, prefer, bind, interleave".to_owned()),
    };
    if needs_nodes == list.is_empty() {
        let problem = if needs_nodes { "needs" } else { "takes no" };
        return Err(format!("{word} {problem} nodes"));
    }
    let nodes = if needs_nodes { nodes(list)? } else { Vec::new() };
    if mode == MemoryMode::Prefer && nodes.len() > 1 {
        return Err("prefer takes one node".to_owned());
    }
    Ok(MemoryPolicy { mode, nodes })
}
