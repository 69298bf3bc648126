//! What the checks read of the manifests in `packaging/kubernetes`: the image, and how a container runs the program.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::contents::{KUBERNETES, MANIFESTS};

/// How a Job runs the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The manifest.
    pub name: &'static str,
    pub image: String,
    pub arguments: Vec<String>,
    /// The user of the process.
    pub user: u32,
}

/// Those of all manifests of the source at `root`.
pub fn jobs(root: &Path) -> anyhow::Result<Vec<Job>> {
    let job = |&name: &&'static str| {
        let path = root.join(KUBERNETES).join(name);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Job::parse(name, &text).with_context(|| format!("{name} has not the form that is expected"))
    };
    MANIFESTS.iter().map(job).collect()
}

impl Job {
    /// Reads the lines that matter, each of which is there once.
    fn parse(name: &'static str, text: &str) -> Option<Job> {
        let arguments = value(text, "args:")?.strip_prefix('[')?.strip_suffix(']')?;
        Some(Job {
            name,
            image: value(text, "image:")?.to_owned(),
            arguments: arguments.split(", ").map(str::to_owned).collect(),
            user: value(text, "runAsUser:")?.parse().ok()?,
        })
    }
}

/// What follows `key`, without a comment; `None` where it is not there once.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut values = text.lines().filter_map(|line| line.trim_start().strip_prefix(key));
    let value = values.next()?;
    let is_only = values.next().is_none();
    is_only.then(|| value.split(" #").next().unwrap_or(value).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jobs_run_this_version_on_the_volume() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let jobs = jobs(root).unwrap();
        assert_eq!(jobs.iter().map(|job| job.user).collect::<Vec<_>>(), [0, 65532]);
        for Job { name, image, arguments, .. } in jobs {
            let image = image.rsplit('/').next().unwrap().to_owned();
            assert_eq!(image, format!("fathom:{}", env!("CARGO_PKG_VERSION")), "{name}");
            assert_eq!(arguments.first().map(String::as_str), Some("bench"), "{name}");
            let text = fs::read_to_string(root.join(KUBERNETES).join(name)).unwrap();
            let mounted = format!("mountPath: {}", arguments.last().unwrap());
            assert_eq!(text.matches(&mounted).count(), 1, "{name}");
            assert!(text.contains(&format!("kubectl apply -f {name}")), "{name}");
            let changes = text.matches("# change:").count();
            let said = ["two", "three"][changes - 2];
            assert!(text.contains(&format!("Change the {said} marked lines")), "{name}");
        }
    }

    #[test]
    fn a_line_that_is_not_there_once_is_refused() {
        let job = "image: a/fathom:1 # change\n  args: [bench, /data]\n  runAsUser: 7\n";
        let parsed = Job::parse("x", job).unwrap();
        assert_eq!((parsed.image.as_str(), parsed.user), ("a/fathom:1", 7));
        assert_eq!(parsed.arguments, ["bench", "/data"]);
        assert_eq!(Job::parse("x", &format!("{job}image: b\n")), None);
        assert_eq!(Job::parse("x", &job.replace("args:", "command:")), None);
    }
}
