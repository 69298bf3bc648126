//! How the ranks of a job get to know each other: each says who it is, rank 0 compares, and hands out the job files
//! and the roles, by which ranks do different things:
//!
//! ```toml
//! [[role]]
//! name = "writers"
//! ranks = "0-3"
//! options = { rw = "write" }
//!
//! [[role]]
//! name = "readers"              # the other ranks
//! options = { rw = "randread" }
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use fathom_options::FleetOptions;
use fathom_record::ClockState;
use fathom_sys::clock::{RealClock, monotonic_ns};
use fathom_sys::device::HostFacts;
use fathom_sys::process_manager::{self, ProcessManager, promised_size};
use flate2::Crc;
use serde::{Deserialize, Serialize};

use super::coordinator::Coordinator;
use super::records::RecordDirectory;
use super::{Exchange, manager_error, to_json};
use super::{Fleet, LAST_WORDS_NS, MISSING_EXIT, PATIENCE_WITH_RANK_0_NS, leave_rank_0_last_words};
use crate::conditions::clock_state;
use crate::{AssessError, ErrorKind};

/// Largest estimated error of a clock that phases may start by, ns.
const MAX_CLOCK_ERROR_NS: u64 = 1_000_000;

/// The variables that tell the place of a rank.
const VARIABLES: [&str; 4] = ["fathom_RANK", "fathom_RANKS", "fathom_LOCAL_RANK", "fathom_HOST"];

/// The place of a rank in its job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetPlace {
    /// Its number, from 0.
    pub rank: u32,
    /// Ranks of the job.
    pub ranks: u32,
    /// Its number among the ranks of its host, from 0.
    pub local_rank: u32,
    /// Its host.
    pub host: String,
    /// Its role, where the job has roles.
    pub role: Option<String>,
    /// The hosts of all ranks, once they have met.
    pub hosts: Vec<String>,
}

impl FleetPlace {
    /// The value of a variable of job files (`fathom_RANK` …).
    pub fn variable(&self, name: &str) -> Option<String> {
        Some(match name {
            "fathom_RANK" => self.rank.to_string(),
            "fathom_RANKS" => self.ranks.to_string(),
            "fathom_LOCAL_RANK" => self.local_rank.to_string(),
            "fathom_HOST" => self.host.clone(),
            _ => return None,
        })
    }

    /// `text` with the values of the variables in it (`${fathom_RANK}` …).
    pub fn expand(&self, text: &str) -> String {
        VARIABLES.iter().fold(text.to_owned(), |text, name| {
            let value = self.variable(name).unwrap_or_default();
            text.replace(&format!("${{{name}}}"), &value)
        })
    }

    /// This rank, for people.
    pub fn name(&self) -> String {
        format!("rank {} on {}", self.rank, self.host)
    }

    /// A rank, for people.
    pub fn name_of(&self, rank: u32) -> String {
        match self.host_of(rank) {
            "" => format!("rank {rank}"),
            host => format!("rank {rank} on {host}"),
        }
    }

    /// The host of a rank; empty before the ranks have met.
    pub fn host_of(&self, rank: u32) -> &str {
        self.hosts.get(rank as usize).map_or("", String::as_str)
    }
}

/// What rank 0 reads for all ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetFiles {
    /// Job files by their names.
    pub jobs: BTreeMap<String, String>,
    /// The roles.
    pub roles: Option<String>,
}

/// A job that this process has joined, before its ranks have met.
#[derive(Debug)]
pub struct FleetJob {
    exchange: Exchange,
    options: FleetOptions,
    hello: Hello,
}

/// What each rank says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Hello {
    version: String,
    host: String,
    boot_id: String,
    /// Checksum of the command line.
    command: u32,
    clock: Option<ClockState>,
    /// Why it cannot begin.
    problem: Option<String>,
}

/// What rank 0 answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Welcome {
    /// Why the ranks cannot measure together, and what to do about it.
    refusal: Option<(String, String)>,
    hosts: Vec<String>,
    /// A number that tells jobs apart.
    job: u64,
    files: FleetFiles,
}

/// Why the ranks of a job did not meet.
#[derive(Debug)]
pub struct FleetStop {
    /// Why.
    pub error: AssessError,
    /// True where every rank has the same error, so that one of them is enough to report it.
    pub is_of_all: bool,
    /// This rank, for people.
    pub name: String,
    rank: u32,
    job: Option<FleetJob>,
    since_ns: u64,
}

impl FleetStop {
    /// Has the launcher end the job, where ranks are missing from it, and else leaves rank 0 the time to say why. The caller has to end
    /// itself.
    pub fn abort(self) {
        let Some(mut job) = self.job else { return leave_rank_0_last_words(self.rank) };
        let wait_ns = if job.rank() == 0 { LAST_WORDS_NS } else { PATIENCE_WITH_RANK_0_NS };
        let left_ns = (self.since_ns + wait_ns).saturating_sub(monotonic_ns());
        let clock = RealClock::start();
        clock.sleep_until(clock.now() + left_ns, Duration::from_secs(1), || true);
        job.exchange.abort(MISSING_EXIT, "not all ranks came");
    }
}

impl FleetJob {
    /// Joins the job that this process was started for by a launcher; `variable` looks up the environment.
    ///
    /// # Errors
    /// No launcher started it, it started this process alone although it says more, or it cannot be asked.
    pub fn join(
        options: FleetOptions,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<FleetJob, AssessError> {
        let (began_ns, limit) = (monotonic_ns(), options.join());
        let joined = process_manager::join(variable, limit)
            .map_err(|error| manager_error("joining the job", error))?;
        let promised = promised_size(variable).filter(|(_, size)| *size > 1);
        match (joined, promised) {
            (None, None) => Err(AssessError::usage(
                "--fleet joins a job that a launcher started, and none started this process",
                "start it with srun --mpi=pmi2, mpiexec (MPICH) or mpirun (Open MPI), or omit --fleet",
            )),
            (None, Some(promised)) => Err(alone(promised)),
            (Some(manager), Some(promised)) if manager.place().size == 1 => {
                let _ = { manager }.finish(limit);
                Err(alone(promised))
            }
            (Some(manager), _) => {
                let facts = HostFacts::read();
                let host = facts.hostname.unwrap_or_else(|| "unknown".to_owned());
                Ok(FleetJob::on(manager, options, host, facts.boot_id.unwrap_or_default(), began_ns))
            }
        }
    }

    /// A job over `manager`, of a rank on `host` that has been joining since `began_ns`.
    pub(super) fn on(
        manager: Box<dyn ProcessManager>,
        options: FleetOptions,
        host: String,
        boot_id: String,
        began_ns: u64,
    ) -> FleetJob {
        let clock = fathom_sys::clock::wall_clock_state().map(clock_state);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let hello = Hello { version, host, boot_id, clock, ..Hello::default() };
        let mut exchange = Exchange::new(manager);
        exchange.joins(began_ns, options.join());
        FleetJob { exchange, options, hello }
    }

    /// Number of this rank.
    pub fn rank(&self) -> u32 {
        self.exchange.place.rank
    }

    /// The place of this rank, as far as it is known before the ranks have met. That of rank 0 is complete but for its role.
    pub fn place(&self) -> FleetPlace {
        let host = self.hello.host.clone();
        FleetPlace { rank: self.rank(), ranks: self.exchange.place.size, host, ..FleetPlace::default() }
    }

    /// Says another version than this program's, as a rank of another release does: for tests of jobs with mixed versions.
    #[must_use]
    pub fn of_version(mut self, version: &str) -> FleetJob {
        self.hello.version = version.to_owned();
        self
    }

    /// Meets the other ranks: `command` must be the same on all, and all get the files of rank 0, which are not looked at on others.
    /// An error in them is that of the job. `tell` gets lines for standard error later.
    ///
    /// # Errors
    /// Ranks do not come, or cannot measure together.
    pub fn meet(
        mut self,
        command: &[String],
        files: Result<FleetFiles, String>,
        tell: impl Fn(&str) + Send + 'static,
    ) -> Result<(Fleet, FleetFiles), Box<FleetStop>> {
        let (name, rank) = (self.place().name(), self.rank());
        let stop = |error: AssessError, is_of_all: bool, job: Option<FleetJob>| {
            Box::new(FleetStop { error, is_of_all, name, rank, job, since_ns: monotonic_ns() })
        };
        let welcome = match self.greet(command, files) {
            Ok(welcome) => welcome,
            Err(error) => return Err(stop(error, false, Some(self))),
        };
        if let Some((reason, hint)) = welcome.refusal {
            // Leaving at once makes some launchers report a failure of their own.
            let _ = self.exchange.finish();
            let hint = Some(hint).filter(|hint| !hint.is_empty());
            return Err(stop(AssessError::new(ErrorKind::Usage, reason, hint), true, None));
        }
        let Welcome { hosts, job, files, .. } = welcome;
        let mut place = FleetPlace { hosts, ..self.place() };
        let before = place.hosts.iter().take(place.rank as usize);
        place.local_rank = before.filter(|host| **host == place.host).count() as u32;
        let role = files.roles.as_deref().and_then(|text| {
            let roles = FleetRoles::parse("", text).ok()?;
            roles.role_of(place.rank, &place.host).map(|role| role.name.clone())
        });
        place.role = role;
        let open = |path| RecordDirectory::open(path, place.rank, &place.host, job);
        let directory = self.options.out.as_deref().map(open);
        let coordinator = Coordinator::new(self.exchange, place, self.options, directory);
        let fleet = Fleet::begin(coordinator, tell).map_err(|error| stop(error, false, None))?;
        Ok((fleet, files))
    }

    fn greet(
        &mut self,
        command: &[String],
        files: Result<FleetFiles, String>,
    ) -> Result<Welcome, AssessError> {
        self.exchange.phase = "all ranks to join";
        let mut crc = Crc::new();
        command.iter().for_each(|word| {
            crc.update(word.as_bytes());
            crc.update(b"\0");
        });
        self.hello.command = crc.sum();
        let earlier = self.options.out.as_deref().and_then(|out| RecordDirectory::earlier(out, self.rank()));
        let (files, problem) = match files {
            Ok(files) => (files, None),
            Err(problem) => (FleetFiles::default(), Some(problem)),
        };
        self.hello.problem = problem.or(earlier);
        self.exchange.put("hello", &to_json(&self.hello))?;
        let join = self.options.join();
        self.exchange.fence(join)?;
        // The last rank may have come late: what they have to tell each other takes as long again at most.
        self.exchange.joins(monotonic_ns(), join);
        if self.rank() == 0 {
            let hellos = (0..self.exchange.place.size).map(|rank| self.exchange.read(rank, "hello"));
            let hellos: Vec<Hello> = hellos.collect::<Result<_, _>>()?;
            let refusal = refusal(&hellos, self.options.starts_by_clock, files.roles.as_deref());
            let hosts = hellos.into_iter().map(|hello| hello.host).collect();
            let welcome = Welcome { refusal, hosts, job: crate::machine::random(), files };
            self.exchange.put("welcome", &to_json(&welcome))?;
        }
        self.exchange.fence(join)?;
        let welcome = self.exchange.read(0, "welcome")?;
        self.exchange.joined();
        Ok(welcome)
    }
}

/// The launcher announced more ranks than the job has.
fn alone((variable, promised): (&str, u32)) -> AssessError {
    AssessError::usage(
        format!("this process is alone in its job, but {variable} says {promised} processes"),
        "start all ranks with one launcher, and Slurm's with srun --mpi=pmi2 or --mpi=pmix; \
         otherwise each would report as if it were all of them",
    )
}

/// Why these ranks cannot measure together, and what to do about it.
fn refusal(hellos: &[Hello], starts_by_clock: bool, roles: Option<&str>) -> Option<(String, String)> {
    let first = hellos.first()?;
    let name = |rank: usize| format!("rank {rank} on {}", hellos[rank].host);
    let found = |reason: String, hint: &str| Some((reason, hint.to_owned()));
    for (rank, hello) in hellos.iter().enumerate() {
        if hello.version != first.version {
            let reason = format!(
                "{} runs fathom {}, and {} runs fathom {}",
                name(rank),
                hello.version,
                name(0),
                first.version
            );
            return found(reason, "install one version on all hosts");
        }
        if let Some(problem) = &hello.problem {
            let is_of_directory = rank > 0 || problem.contains(" of an earlier job");
            let hint = if is_of_directory { "name another directory with --fleet-out" } else { "" };
            return found(format!("{}: {problem}", name(rank)), hint);
        }
        if hello.command != first.command {
            let reason = format!("{} was started with another command line than {}", name(rank), name(0));
            return found(reason, "start all ranks with the same words; --fleet-plan gives them roles");
        }
    }
    let is_one_machine =
        hellos.iter().all(|hello| !hello.boot_id.is_empty() && hello.boot_id == first.boot_id);
    if starts_by_clock && !is_one_machine {
        let hint = "omit --fleet-start=clock, or have a time service (chrony, PTP) keep the clocks";
        for (rank, hello) in hellos.iter().enumerate() {
            let problem = match hello.clock {
                None => "its clock's error is unknown".to_owned(),
                Some(clock) if !clock.synchronized => "its clock is not synchronized".to_owned(),
                Some(clock) if clock.estimated_error_ns >= MAX_CLOCK_ERROR_NS => {
                    let ms = clock.estimated_error_ns as f64 / 1e6;
                    format!(
                        "the error of its clock is {ms:.1} ms, and phases start by clocks below 1 ms only"
                    )
                }
                Some(_) => continue,
            };
            return found(format!("{}: {problem}", name(rank)), hint);
        }
    }
    let roles = roles.and_then(|text| FleetRoles::parse("", text).ok())?;
    let without = (0..hellos.len()).find(|&rank| roles.role_of(rank as u32, &hellos[rank].host).is_none())?;
    found(format!("{} has no role", name(without)), "a [[role]] without ranks and hosts is for the rest")
}

impl FleetFiles {
    /// The role of the rank at `place`.
    ///
    /// # Errors
    /// The roles cannot be read.
    pub fn role(&self, place: &FleetPlace) -> Result<Option<FleetRole>, AssessError> {
        let Some(text) = &self.roles else { return Ok(None) };
        let roles = FleetRoles::parse("the roles", text)?;
        Ok(roles.role_of(place.rank, &place.host).cloned())
    }
}

/// The roles of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetRoles {
    roles: Vec<FleetRole>,
}

/// What some of the ranks do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetRole {
    /// Its name, which stands before those of its jobs.
    pub name: String,
    /// Its ranks: `0-3,8`.
    #[serde(default)]
    ranks: Option<String>,
    /// Its hosts: `h1`, `h[1-8,12]`.
    #[serde(default)]
    hosts: Vec<String>,
    /// The jobs that it runs; all where none is named.
    #[serde(default)]
    pub jobs: Vec<String>,
    /// Options of fio that replace those of its jobs.
    #[serde(default)]
    options: BTreeMap<String, OptionText>,
}

/// The value of an option, with or without quotes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum OptionText {
    Text(String),
    Number(i64),
    Flag(bool),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RolesFile {
    #[serde(default)]
    role: Vec<FleetRole>,
}

impl FleetRoles {
    /// Reads the roles of `file`.
    ///
    /// # Errors
    /// It is not TOML, has other fields, or roles that cannot be told apart.
    pub fn parse(file: &str, text: &str) -> Result<FleetRoles, AssessError> {
        let hint =
            "write [[role]] with name, ranks = \"0-3,8\" or hosts = [\"h1\"], and [role.options] of fio";
        let wrong = |reason: String| AssessError::usage(format!("{file}: {reason}"), hint);
        let RolesFile { role: roles } =
            toml::from_str(text).map_err(|error| wrong(error.message().to_owned()))?;
        if roles.is_empty() {
            return Err(wrong("it has no [[role]]".to_owned()));
        }
        for (place, role) in roles.iter().enumerate() {
            let is_word = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
            if role.name.is_empty() || !role.name.chars().all(is_word) {
                return Err(wrong(format!("the name of role {} must be a word: '{}'", place + 1, role.name)));
            }
            if roles[..place].iter().any(|other| other.name == role.name) {
                return Err(wrong(format!("two roles are called '{}'", role.name)));
            }
            let is_list = |text: &str| number_ranges(text).is_some();
            if let Some(ranks) = role.ranks.as_deref().filter(|ranks| !is_list(ranks)) {
                return Err(wrong(format!("role '{}': ranks '{ranks}' are not like '0-3,8'", role.name)));
            }
            let is_pattern = |host: &&String| bracket(host).is_none_or(|(_, list, _)| is_list(list));
            if let Some(host) = role.hosts.iter().find(|host| !is_pattern(host)) {
                return Err(wrong(format!("role '{}': host '{host}' is not like 'h[1-8]'", role.name)));
            }
        }
        Ok(FleetRoles { roles })
    }

    /// The role of a rank: the first that names it, else the first that names none.
    pub fn role_of(&self, rank: u32, host: &str) -> Option<&FleetRole> {
        let named = self.roles.iter().find(|role| role.names(rank, host));
        named.or_else(|| self.roles.iter().find(|role| role.ranks.is_none() && role.hosts.is_empty()))
    }
}

impl FleetRole {
    /// Options of fio, by name.
    pub fn options(&self) -> impl Iterator<Item = (&str, String)> {
        self.options.iter().map(|(name, value)| {
            let value = match value {
                OptionText::Text(text) => text.clone(),
                OptionText::Number(number) => number.to_string(),
                OptionText::Flag(flag) => u8::from(*flag).to_string(),
            };
            (name.as_str(), value)
        })
    }

    fn names(&self, rank: u32, host: &str) -> bool {
        let has_rank = self.ranks.as_deref().is_some_and(|ranks| contains(ranks, u64::from(rank)));
        has_rank || self.hosts.iter().any(|pattern| is_host(pattern, host))
    }
}

/// `h[1-8,12]` in its three parts.
fn bracket(pattern: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = pattern.split_once('[')?;
    let (list, after) = rest.split_once(']')?;
    Some((before, list, after))
}

/// True where `pattern` names `host`, with or without its domain.
fn is_host(pattern: &str, host: &str) -> bool {
    let is = |host: &str| match bracket(pattern) {
        None => pattern == host,
        Some((before, list, after)) => {
            let number = host.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            number.and_then(|text| text.parse().ok()).is_some_and(|number| contains(list, number))
        }
    };
    is(host) || host.split_once('.').is_some_and(|(short, _)| is(short))
}

fn contains(list: &str, number: u64) -> bool {
    number_ranges(list).is_some_and(|ranges| ranges.iter().any(|(from, to)| (*from..=*to).contains(&number)))
}

/// `0-3,8` as ranges; `None` where the text is no list of ranges.
fn number_ranges(list: &str) -> Option<Vec<(u64, u64)>> {
    let range = |word: &str| {
        let (from, to) = word.split_once('-').unwrap_or((word, word));
        let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        (from <= to).then_some((from, to))
    };
    list.split(',').map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(host: &str) -> Hello {
        let clock = Some(ClockState { synchronized: true, max_error_ns: 9, estimated_error_ns: 9 });
        Hello {
            version: "1".to_owned(),
            host: host.to_owned(),
            boot_id: host.to_owned(),
            clock,
            ..Hello::default()
        }
    }

    fn refused(hellos: &[Hello], starts_by_clock: bool, roles: Option<&str>) -> String {
        refusal(hellos, starts_by_clock, roles).map(|(reason, _)| reason).unwrap_or_default()
    }

    #[test]
    fn ranks_that_cannot_measure_together_are_named() {
        let (a, b) = (hello("a"), hello("b"));
        assert_eq!(refused(&[a.clone(), b.clone()], false, None), "");
        let other = Hello { version: "2".to_owned(), ..b.clone() };
        assert_eq!(
            refused(&[a.clone(), other], false, None),
            "rank 1 on b runs fathom 2, and rank 0 on a runs fathom 1"
        );
        let other = Hello { command: 7, ..b.clone() };
        assert!(
            refused(&[a.clone(), other], false, None).starts_with("rank 1 on b was started with another")
        );
        let other = Hello { problem: Some("no".to_owned()), ..b.clone() };
        assert_eq!(refused(&[a.clone(), other], false, None), "rank 1 on b: no");
        let roles = "[[role]]\nname = 'r'\nranks = '0'\n";
        assert_eq!(refused(&[a.clone(), b.clone()], false, Some(roles)), "rank 1 on b has no role");
    }

    #[test]
    fn phases_start_by_good_clocks_only() {
        let with = |state: Option<(bool, u64)>| {
            let clock = state.map(|(synchronized, estimated_error_ns)| ClockState {
                synchronized,
                estimated_error_ns,
                ..ClockState::default()
            });
            refused(&[hello("a"), Hello { clock, ..hello("b") }], true, None)
        };
        assert_eq!(with(Some((true, 999_999))), "");
        assert_eq!(
            with(Some((true, 3_200_000))),
            "rank 1 on b: the error of its clock is 3.2 ms, and phases start by clocks below 1 ms only"
        );
        assert_eq!(with(Some((false, 0))), "rank 1 on b: its clock is not synchronized");
        assert_eq!(with(None), "rank 1 on b: its clock's error is unknown");
        // One clock needs no service.
        let one = Hello { clock: None, ..hello("a") };
        assert_eq!(refused(&[one.clone(), one], true, None), "");
    }

    #[test]
    fn variables_tell_the_place() {
        let place =
            FleetPlace { rank: 3, ranks: 4, local_rank: 1, host: "h1".to_owned(), ..FleetPlace::default() };
        let values = ["RANK", "RANKS", "LOCAL_RANK", "HOST", "OTHER"];
        let found = values.map(|name| place.variable(&format!("fathom_{name}")).unwrap_or_default());
        assert_eq!(found, ["3", "4", "1", "h1", ""]);
        assert_eq!(
            place.expand("/mnt/${fathom_HOST}-${fathom_RANK}.${fathom_RANKS} ${HOME}"),
            "/mnt/h1-3.4 ${HOME}"
        );
    }

    #[test]
    fn ranks_have_the_first_role_that_names_them() {
        let text = "[[role]]\nname = 'rest'\n\
            [[role]]\nname = 'writers'\nranks = '0-1, 4'\noptions = { rw = 'write', iodepth = 4, direct = true }\n\
            [[role]]\nname = 'special'\nhosts = ['h[7-9]', 'big']\njobs = ['a']\n";
        let roles = FleetRoles::parse("x", text).unwrap();
        let role = |rank, host: &str| roles.role_of(rank, host).unwrap().name.clone();
        assert_eq!([role(0, "h1"), role(4, "h9"), role(2, "h1")], ["writers", "writers", "rest"]);
        assert_eq!(
            [role(3, "h08.cluster"), role(5, "big"), role(6, "bigger")],
            ["special", "special", "rest"]
        );
        let options: Vec<_> = roles.role_of(1, "").unwrap().options().collect();
        let expected = [("direct", "1"), ("iodepth", "4"), ("rw", "write")];
        assert_eq!(options, expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn wrong_roles_are_refused() {
        for (text, expected) in [
            ("", "it has no [[role]]"),
            ("[[role]]\nname = 'a b'", "must be a word"),
            ("[[role]]\nname = 'a'\n[[role]]\nname = 'a'", "two roles are called 'a'"),
            ("[[role]]\nname = 'a'\nranks = '3-1'", "are not like '0-3,8'"),
            ("[[role]]\nname = 'a'\nhosts = ['h[x]']", "is not like 'h[1-8]'"),
            ("[[role]]\nname = 'a'\nrank = 3", "unknown field"),
            ("role = ", ""),
        ] {
            let error = FleetRoles::parse("plan.toml", text).unwrap_err().to_string();
            assert!(error.starts_with("plan.toml: ") && error.contains(expected), "{text}: {error}");
        }
    }
}
