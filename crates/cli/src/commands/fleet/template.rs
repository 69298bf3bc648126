//! `fathom fleet template`: batch scripts, manifests and plays that start the ranks of a job where a cluster has its own way.

#[cfg(test)]
mod schema;
#[cfg(test)]
mod tests;

use clap::{Args, Subcommand};
use fathom_model::Nanos;
use fathom_model::text::shell_quoted;

use crate::commands::words::positive_duration;
use crate::exit::{Complaint, Exit};
use crate::output;

const SBATCH: &str = include_str!("template/fleet.sbatch");
const MPI_JOB: &str = include_str!("template/mpijob.yaml");
const INDEXED_JOB: &str = include_str!("template/indexed-job.yaml");
const PLAY: &str = include_str!("template/play.yaml");

/// Where the image of this version would be.
const IMAGE: &str = concat!("registry.example.com/fathom:", env!("CARGO_PKG_VERSION"));

/// What `fathom fleet template` takes.
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct TemplateArguments {
    #[command(subcommand)]
    kind: Kind,
}

const EXAMPLES: &str = "\
Examples:
  fathom fleet template sbatch --nodes 16 bench /mnt/shared > fleet.sbatch
  fathom fleet template mpijob --workers 8 > mpijob.yaml
  fathom fleet template indexed-job --ranks 8 --claim my-claim > indexed-job.yaml
  fathom fleet template ansible --group storage bench /mnt/shared > play.yaml";

#[derive(Subcommand)]
enum Kind {
    /// Batch script for Slurm
    #[command(after_help = SBATCH_EXAMPLES)]
    Sbatch(SbatchArguments),
    /// MPIJob of Kubeflow's MPI operator (MPICH): all pods start together
    #[command(after_help = MPI_JOB_EXAMPLES)]
    Mpijob(MpiJobArguments),
    /// Indexed Job of Kubernetes, whose records are merged afterwards
    #[command(after_help = INDEXED_JOB_EXAMPLES)]
    IndexedJob(IndexedJobArguments),
    /// Ansible play for hosts with SSH and nothing else, whose records are merged afterwards
    #[command(after_help = ANSIBLE_EXAMPLES)]
    Ansible(AnsibleArguments),
}

const SBATCH_EXAMPLES: &str = "\
Examples:
  fathom fleet template sbatch > fleet.sbatch && sbatch fleet.sbatch
  fathom fleet template sbatch --nodes 64 --time 2h fio job.fio > fleet.sbatch
  fathom fleet template sbatch --nodes 16 -- --fleet-scale bench --only rand-read /mnt/shared";

const MPI_JOB_EXAMPLES: &str = "\
Examples:
  fathom fleet template mpijob > mpijob.yaml
  fathom fleet template mpijob --workers 8 --claim shared bench --quick /data";

const INDEXED_JOB_EXAMPLES: &str = "\
Examples:
  fathom fleet template indexed-job > indexed-job.yaml
  fathom fleet template indexed-job --ranks 8 bench --only rand-read --runtime 2m /data";

const ANSIBLE_EXAMPLES: &str = "\
Examples:
  fathom fleet template ansible > play.yaml && ansible-playbook -i inventory --forks 100 play.yaml
  fathom fleet template ansible --group storage --program /opt/fathom bench --quick /mnt/shared";

#[derive(Args)]
struct SbatchArguments {
    /// Nodes
    #[arg(long, default_value_t = 4, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=MOST))]
    nodes: u32,
    /// Ranks on each node
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=MOST))]
    per_node: u32,
    /// Longest time of the job
    #[arg(long, default_value = "1h", value_name = "TIME", value_parser = positive_duration)]
    time: Nanos,
    /// fathom on the nodes
    #[arg(long, default_value = "fathom", value_name = "PATH")]
    program: String,
    /// Command of the ranks with its options
    #[arg(default_values = ["bench", "/mnt/shared"], trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The volumes of pods.
#[derive(Args)]
struct ClaimArguments {
    /// Claim to measure, mounted at /data
    #[arg(long, default_value = "my-claim", value_name = "NAME", value_parser = kubernetes_name)]
    claim: String,
    /// Claim for the records
    #[arg(long, default_value = "my-records", value_name = "NAME", value_parser = kubernetes_name)]
    records_claim: String,
}

#[derive(Args)]
struct MpiJobArguments {
    /// Worker pods, each on a node of its own
    #[arg(long, default_value_t = 4, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=MOST))]
    workers: u32,
    /// Ranks in each pod
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=MOST))]
    per_worker: u32,
    /// Image with fathom, MPICH and an SSH server
    #[arg(long, default_value = IMAGE, value_name = "IMAGE", value_parser = kubernetes_name)]
    image: String,
    #[command(flatten)]
    claims: ClaimArguments,
    /// Command of the ranks with its options
    #[arg(default_values = ["bench", "/data"], trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Args)]
struct IndexedJobArguments {
    /// Pods, each on a node of its own
    #[arg(long, default_value_t = 4, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=MOST))]
    ranks: u32,
    /// Image with fathom
    #[arg(long, default_value = IMAGE, value_name = "IMAGE", value_parser = kubernetes_name)]
    image: String,
    #[command(flatten)]
    claims: ClaimArguments,
    /// bench with its options
    #[arg(default_values = ["bench", "/data"], trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Args)]
struct AnsibleArguments {
    /// Hosts of the inventory
    #[arg(long, default_value = "all", value_name = "GROUP")]
    group: String,
    /// fathom on the hosts, and here
    #[arg(long, default_value = "fathom", value_name = "PATH")]
    program: String,
    /// bench with its options
    #[arg(default_values = ["bench", "/mnt/shared"], trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Most of whatever is counted.
const MOST: i64 = 100_000;

/// A name that needs no quotes in a manifest.
fn kubernetes_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._/:@".contains(c);
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    match begins_well && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("use letters, digits and - . _ / : @".to_owned()),
    }
}

/// Prints a template.
///
/// # Errors
/// The template cannot run this command; standard output cannot be written.
pub fn run(arguments: &TemplateArguments) -> Result<Exit, Complaint> {
    let text = match &arguments.kind {
        Kind::Sbatch(arguments) => arguments.text(),
        Kind::Mpijob(arguments) => arguments.text()?,
        Kind::IndexedJob(arguments) => arguments.text()?,
        Kind::Ansible(arguments) => arguments.text()?,
    };
    output::print(|out| out.own_lines(&text))?;
    Ok(Exit::Done)
}

impl SbatchArguments {
    fn text(&self) -> String {
        let command: Vec<_> = self.command.iter().map(|word| shell_quoted(word)).collect();
        filled(
            SBATCH,
            &[
                ("PER_NODE", &self.per_node.to_string()),
                ("NODES", &self.nodes.to_string()),
                ("TIME", &slurm_time(self.time)),
                ("PROGRAM", &shell_quoted(&self.program)),
                ("COMMAND", &command.join(" ")),
            ],
        )
    }
}

impl MpiJobArguments {
    fn text(&self) -> Result<String, Complaint> {
        Ok(filled(
            MPI_JOB,
            &[
                ("PER_WORKER", &self.per_worker.to_string()),
                ("WORKERS", &self.workers.to_string()),
                ("IMAGE", &self.image),
                ("RECORDS_CLAIM", &self.claims.records_claim),
                ("CLAIM", &self.claims.claim),
                ("COMMAND", &flow(&self.command)?),
            ],
        ))
    }
}

impl IndexedJobArguments {
    fn text(&self) -> Result<String, Complaint> {
        check_bench(&self.command)?;
        Ok(filled(
            INDEXED_JOB,
            &[
                ("RANKS", &self.ranks.to_string()),
                ("IMAGE", &self.image),
                ("RECORDS_CLAIM", &self.claims.records_claim),
                ("CLAIM", &self.claims.claim),
                ("COMMAND", &flow(&self.command)?),
            ],
        ))
    }
}

impl AnsibleArguments {
    fn text(&self) -> Result<String, Complaint> {
        check_bench(&self.command)?;
        let item = |word: &String| Ok(format!("          - {}", yaml_text(word)?));
        let items = self.command[1..].iter().map(item).collect::<Result<Vec<String>, Complaint>>()?;
        Ok(filled(
            PLAY,
            &[
                ("GROUP", &yaml_text(&self.group)?),
                ("PROGRAM", &yaml_text(&self.program)?),
                ("ARGUMENTS", &items.join("\n")),
            ],
        ))
    }
}

/// Each rank keeps its run by itself, which needs a command that labels it.
fn check_bench(command: &[String]) -> Result<(), Complaint> {
    if command.first().is_some_and(|word| word == "bench") {
        return Ok(());
    }
    let message = "the ranks of this template run bench";
    let hint =
        "write bench with its options; the templates sbatch and mpijob run other commands too".to_owned();
    Err(Complaint::usage(message, Some(hint)))
}

/// The template with its values. What they hold is not looked at again.
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('@') {
        let behind = &rest[at + 1..];
        let value = values
            .iter()
            .find(|(name, _)| behind.strip_prefix(*name).is_some_and(|behind| behind.starts_with('@')));
        text.push_str(&rest[..at]);
        match value {
            Some((name, value)) => {
                text.push_str(value);
                rest = &behind[name.len() + 1..];
            }
            None => {
                text.push('@');
                rest = behind;
            }
        }
    }
    text + rest
}

/// A time as Slurm reads it: hours, minutes, seconds.
fn slurm_time(time: Nanos) -> String {
    let seconds = time.0.div_ceil(1_000_000_000);
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Words as a list in one line of a manifest.
fn flow(words: &[String]) -> Result<String, Complaint> {
    let words = words.iter().map(|word| yaml_text(word)).collect::<Result<Vec<String>, Complaint>>()?;
    Ok(format!("[{}]", words.join(", ")))
}

/// A word as a text of YAML, without quotes where it needs none.
fn yaml_text(word: &str) -> Result<String, Complaint> {
    if word.chars().any(char::is_control) {
        return Err(Complaint::usage(format!("'{}' has control characters", word.escape_debug()), None));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._/=".contains(c);
    let looks_like_text = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    const OTHERS: [&str; 7] = ["true", "false", "yes", "no", "on", "off", "null"];
    let is_other = OTHERS.contains(&word.to_ascii_lowercase().as_str()) || word.len() == 1;
    if looks_like_text && !is_other && word.chars().all(is_plain) {
        return Ok(word.to_owned());
    }
    Ok(format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")))
}
