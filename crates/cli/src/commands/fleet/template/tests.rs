//! The templates are what they are said to be: documents with the fields of their kinds, and scripts that a shell reads.

use std::io::Write;
use std::process::{Command, Stdio};

use clap::Parser;

use super::schema::{Node, Schema, documents, mistakes};
use super::*;

const METADATA: Schema = Schema(&[("!name", "text", &[]), ("labels", "map", &[])]);
const PLAIN_METADATA: Schema = Schema(&[("labels", "map", &[])]);
const SELECTOR: Schema = Schema(&[("matchLabels", "map", &[])]);
const SPREAD: Schema = Schema(&[
    ("!maxSkew", "int", &[]),
    ("!topologyKey", "text", &[]),
    ("!whenUnsatisfiable", "one of DoNotSchedule|ScheduleAnyway", &[]),
    ("labelSelector", "fields", &[&SELECTOR]),
]);
const MOUNT: Schema =
    Schema(&[("!name", "text", &[]), ("!mountPath", "text", &[]), ("readOnly", "bool", &[])]);
const VARIABLE: Schema = Schema(&[("!name", "text", &[]), ("value", "text", &[])]);
const AMOUNTS: Schema = Schema(&[("cpu", "quantity", &[]), ("memory", "quantity", &[])]);
const RESOURCES: Schema = Schema(&[("requests", "fields", &[&AMOUNTS]), ("limits", "fields", &[&AMOUNTS])]);
const PORT: Schema = Schema(&[("!port", "int", &[])]);
const PROBE: Schema = Schema(&[("tcpSocket", "fields", &[&PORT]), ("initialDelaySeconds", "int", &[])]);
const CONTAINER: Schema = Schema(&[
    ("!name", "text", &[]),
    ("!image", "text", &[]),
    ("command", "[]text", &[]),
    ("args", "[]text", &[]),
    ("env", "[]fields", &[&VARIABLE]),
    ("resources", "fields", &[&RESOURCES]),
    ("readinessProbe", "fields", &[&PROBE]),
    ("volumeMounts", "[]fields", &[&MOUNT]),
]);
const CLAIM: Schema = Schema(&[("!claimName", "text", &[])]);
const EMPTY: Schema = Schema(&[]);
const VOLUME: Schema = Schema(&[
    ("!name", "text", &[]),
    ("persistentVolumeClaim", "fields", &[&CLAIM]),
    ("emptyDir", "fields", &[&EMPTY]),
]);
const POD: Schema = Schema(&[
    ("restartPolicy", "one of Never|OnFailure|Always", &[]),
    ("automountServiceAccountToken", "bool", &[]),
    ("enableServiceLinks", "bool", &[]),
    ("topologySpreadConstraints", "[]fields", &[&SPREAD]),
    ("initContainers", "[]fields", &[&CONTAINER]),
    ("!containers", "[]fields", &[&CONTAINER]),
    ("volumes", "[]fields", &[&VOLUME]),
]);
const POD_TEMPLATE: Schema =
    Schema(&[("metadata", "fields", &[&PLAIN_METADATA]), ("!spec", "fields", &[&POD])]);
const JOB_SPEC: Schema = Schema(&[
    ("completionMode", "one of Indexed|NonIndexed", &[]),
    ("completions", "int", &[]),
    ("parallelism", "int", &[]),
    ("backoffLimit", "int", &[]),
    ("backoffLimitPerIndex", "int", &[]),
    ("maxFailedIndexes", "int", &[]),
    ("activeDeadlineSeconds", "int", &[]),
    ("suspend", "bool", &[]),
    ("!template", "fields", &[&POD_TEMPLATE]),
]);
const JOB: Schema = Schema(&[
    ("!apiVersion", "one of batch/v1", &[]),
    ("!kind", "one of Job", &[]),
    ("!metadata", "fields", &[&METADATA]),
    ("!spec", "fields", &[&JOB_SPEC]),
]);
const RUN_POLICY: Schema = Schema(&[
    ("backoffLimit", "int", &[]),
    ("cleanPodPolicy", "one of All|Running|None", &[]),
    ("activeDeadlineSeconds", "int", &[]),
    ("ttlSecondsAfterFinished", "int", &[]),
]);
const REPLICA: Schema = Schema(&[
    ("replicas", "int", &[]),
    ("restartPolicy", "one of Never|OnFailure|Always|ExitCode", &[]),
    ("!template", "fields", &[&POD_TEMPLATE]),
]);
const REPLICAS: Schema = Schema(&[("!Launcher", "fields", &[&REPLICA]), ("!Worker", "fields", &[&REPLICA])]);
const MPI_SPEC: Schema = Schema(&[
    ("slotsPerWorker", "int", &[]),
    ("runPolicy", "fields", &[&RUN_POLICY]),
    ("!mpiReplicaSpecs", "fields", &[&REPLICAS]),
    ("sshAuthMountPath", "text", &[]),
    ("launcherCreationPolicy", "one of AtStartup|WaitForWorkersReady", &[]),
    ("mpiImplementation", "one of OpenMPI|Intel|MPICH", &[]),
]);
const MPI: Schema = Schema(&[
    ("!apiVersion", "one of kubeflow.org/v2beta1", &[]),
    ("!kind", "one of MPIJob", &[]),
    ("!metadata", "fields", &[&METADATA]),
    ("!spec", "fields", &[&MPI_SPEC]),
]);
const COMMAND: Schema = Schema(&[("!argv", "[]text", &[])]);
const ASSERTION: Schema = Schema(&[("!that", "text", &[]), ("fail_msg", "text", &[])]);
const FILE: Schema =
    Schema(&[("!path", "text", &[]), ("state", "one of directory|absent", &[]), ("mode", "text", &[])]);
const TEMPORARY: Schema = Schema(&[("state", "one of directory|file", &[]), ("prefix", "text", &[])]);
const FETCH: Schema = Schema(&[("!src", "text", &[]), ("!dest", "text", &[]), ("flat", "bool", &[])]);
const MESSAGE: Schema = Schema(&[("!msg", "text", &[])]);
const TASK: Schema = Schema(&[
    ("!name", "text", &[]),
    ("ansible.builtin.command", "fields", &[&COMMAND]),
    ("ansible.builtin.assert", "fields", &[&ASSERTION]),
    ("ansible.builtin.file", "fields", &[&FILE]),
    ("ansible.builtin.tempfile", "fields", &[&TEMPORARY]),
    ("ansible.builtin.set_fact", "map", &[]),
    ("ansible.builtin.fetch", "fields", &[&FETCH]),
    ("ansible.builtin.debug", "fields", &[&MESSAGE]),
    ("environment", "map", &[]),
    ("register", "text", &[]),
    ("changed_when", "bool", &[]),
    ("failed_when", "text", &[]),
    ("delegate_to", "text", &[]),
    ("run_once", "bool", &[]),
]);
const VARIABLES: Schema = Schema(&[("fathom", "text", &[]), ("lead_seconds", "int", &[])]);
const ANSIBLE_PLAY: Schema = Schema(&[
    ("!name", "text", &[]),
    ("!hosts", "text", &[]),
    ("connection", "one of local", &[]),
    ("gather_facts", "bool", &[]),
    ("any_errors_fatal", "bool", &[]),
    ("vars", "fields", &[&VARIABLES]),
    ("tasks", "[]fields", &[&TASK]),
]);

/// Options of `sbatch` that take a value.
const SBATCH_OPTIONS: [&str; 8] =
    ["--job-name", "--nodes", "--ntasks-per-node", "--mem", "--time", "--output", "--signal", "--partition"];
const SBATCH_FLAGS: [&str; 1] = ["--exclusive"];

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    arguments: TemplateArguments,
}

fn text(words: &[&str]) -> String {
    let line = Line::parse_from([&["template"], words].concat());
    match line.arguments.kind {
        Kind::Sbatch(arguments) => arguments.text(),
        Kind::Mpijob(arguments) => arguments.text().unwrap(),
        Kind::IndexedJob(arguments) => arguments.text().unwrap(),
        Kind::Ansible(arguments) => arguments.text().unwrap(),
    }
}

fn check(node: &Node, schema: &Schema) {
    assert_eq!(mistakes(node, schema), [] as [String; 0]);
}

/// Whether `clap` reads a command line of this program.
fn is_read(words: &[&str]) -> bool {
    crate::commands::command().try_get_matches_from([&["fathom"], words].concat()).is_ok()
}

#[test]
fn the_mpi_job_has_the_fields_of_its_kind() {
    let text = text(&["mpijob", "--workers", "8", "--claim", "shared", "bench", "--runtime", "30s", "/data"]);
    let documents = documents(&text);
    assert_eq!(documents.len(), 1);
    check(&documents[0], &MPI);
    let specs = documents[0].at("spec.mpiReplicaSpecs");
    assert_eq!(specs.at("Worker.replicas").text(), "8");
    let launcher = specs.at("Launcher.template.spec.containers.0");
    let command = [launcher.at("command").texts(), launcher.at("args").texts()].concat();
    assert_eq!(command[command.len() - 4..], ["bench", "--runtime", "30s", "/data"]);
    assert!(is_read(&command[1..]), "{command:?}");
    assert!(text.contains("claimName: shared # change:"), "{text}");
    volumes_are_mounted(specs.at("Worker.template.spec"));
    volumes_are_mounted(specs.at("Launcher.template.spec"));
}

#[test]
fn the_indexed_job_measures_exports_and_merges() {
    let documents = documents(&text(&["indexed-job", "--ranks", "8"]));
    assert_eq!(documents.len(), 2);
    documents.iter().for_each(|document| check(document, &JOB));
    let spec = documents[0].at("spec");
    for field in ["completions", "parallelism", "maxFailedIndexes"] {
        assert_eq!(spec.at(field).text(), "8");
    }
    let pod = spec.at("template.spec");
    for container in ["initContainers.0", "containers.0"] {
        let words = pod.at(&format!("{container}.args")).texts();
        assert!(is_read(&words), "{words:?}");
    }
    let merge = documents[1].at("spec.template.spec");
    let words = merge.at("containers.0.args").texts();
    assert!(is_read(&words) && words.contains(&"--ranks=8"), "{words:?}");
    volumes_are_mounted(pod);
    volumes_are_mounted(merge);
}

/// Every mount has its volume.
fn volumes_are_mounted(pod: &Node) {
    let names = |node: &Node| -> Vec<String> {
        let Node::List(items) = node else { panic!("{node:?}") };
        items.iter().map(|item| item.at("name").text().to_owned()).collect()
    };
    let volumes = names(pod.at("volumes"));
    let Node::Map(fields) = pod else { panic!("{pod:?}") };
    for (_, containers) in fields.iter().filter(|(key, _)| key.ends_with("ontainers")) {
        let Node::List(containers) = containers else { panic!("{containers:?}") };
        for mount in containers.iter().flat_map(|container| names(container.at("volumeMounts"))) {
            assert!(volumes.contains(&mount), "{mount}");
        }
    }
}

#[test]
fn the_play_has_the_fields_of_tasks() {
    let text = text(&["ansible", "--group", "storage", "bench", "--only", "rand-read", "/mnt/a b"]);
    let documents = documents(&text);
    let Node::List(plays) = &documents[0] else { panic!("{documents:?}") };
    assert_eq!(plays.len(), 2);
    plays.iter().for_each(|play| check(play, &ANSIBLE_PLAY));
    assert_eq!(plays[0].at("hosts").text(), "storage");
    let Node::List(tasks) = plays[0].at("tasks") else { panic!("{plays:?}") };
    for task in tasks {
        let Node::Map(fields) = task else { panic!("{task:?}") };
        let modules = fields.iter().filter(|(key, _)| key.starts_with("ansible.builtin."));
        assert_eq!(modules.count(), 1, "{task:?}");
    }
    let Node::Map(measure) = &tasks[5] else { panic!("{tasks:?}") };
    let argv = measure[1].1.at("argv").texts();
    assert_eq!(argv[argv.len() - 3..], ["--only", "rand-read", "/mnt/a b"]);
    let bench = argv.iter().position(|word| *word == "bench").unwrap();
    assert!(is_read(&argv[bench..]), "{argv:?}");
    shell_reads(argv[2]);
}

#[test]
fn the_batch_script_is_one() {
    let text =
        text(&["sbatch", "--nodes", "16", "--time", "90m", "--", "--fleet-scale", "bench", "/mnt/a b"]);
    assert!(text.starts_with("#!/bin/bash\n"), "{text}");
    shell_reads(&text);
    let options: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("#SBATCH ")).collect();
    for option in &options {
        let is_known = match option.split_once('=') {
            Some((name, value)) => SBATCH_OPTIONS.contains(&name) && !value.is_empty(),
            None => SBATCH_FLAGS.contains(option),
        };
        assert!(is_known, "{option}");
    }
    assert!(options.contains(&"--nodes=16") && options.contains(&"--time=01:30:00"), "{options:?}");
    // Options count up to the first command.
    let first = text.lines().position(|line| !line.is_empty() && !line.starts_with('#')).unwrap();
    assert!(text.lines().skip(first).all(|line| !line.starts_with("#SBATCH")));
    let command = text.rsplit("exec ").next().unwrap().replace("\\\n", " ");
    assert!(command.trim_end().ends_with("--fleet-scale bench '/mnt/a b'"), "{command}");
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    assert!(is_read(&words), "{words:?}");
}

/// A shell can read a script.
fn shell_reads(script: &str) {
    let mut shell = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(shell.wait().unwrap().success(), "{script}");
}

#[test]
fn nothing_is_left_to_fill_in() {
    for kind in ["sbatch", "mpijob", "indexed-job", "ansible"] {
        let text = text(&[kind]);
        let is_mark = |word: &str| {
            let inner = word.strip_prefix('@').and_then(|word| word.strip_suffix('@'));
            inner.is_some_and(|inner| inner.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
        };
        assert!(
            !text
                .split(|c: char| !(c.is_ascii_uppercase() || c == '_' || c == '@'))
                .any(|word| word.len() > 2 && is_mark(word)),
            "{kind}: {text}"
        );
        assert!(text.lines().all(|line| line.len() <= 160), "{kind}");
        // What lies there under a fixed name may be another user's.
        assert!(!text.contains("/tmp/"), "{kind}: {text}");
    }
    assert_eq!(filled("a@b @X@ @Y", &[("X", "@Y@")]), "a@b @Y@ @Y");
}

#[test]
fn words_are_quoted_where_yaml_needs_it() {
    for (word, expected) in [
        ("bench", "bench"),
        ("/mnt/data", "/mnt/data"),
        ("--runtime=30s", "\"--runtime=30s\""),
        ("30", "\"30\""),
        ("true", "\"true\""),
        ("a b", "\"a b\""),
        ("say \"x\\\"", "\"say \\\"x\\\\\\\"\""),
        ("", "\"\""),
    ] {
        let text = yaml_text(word).unwrap();
        assert_eq!(text, expected);
        assert_eq!(documents(&format!("- {text}\n"))[0].texts(), [word]);
    }
    assert!(yaml_text("a\nb").is_err());
}

#[test]
fn commands_that_a_template_cannot_run_are_refused() {
    assert!(check_bench(&["bench".to_owned()]).is_ok());
    assert!(check_bench(&["fio".to_owned(), "job.fio".to_owned()]).is_err() && check_bench(&[]).is_err());
    assert_eq!(slurm_time(Nanos::from_secs(3_661)), "01:01:01");
    assert!(kubernetes_name("a/b:1@sha256").is_ok() && kubernetes_name("a b").is_err());
}
