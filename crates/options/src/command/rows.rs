//! The table of the command's own options.

use std::path::PathBuf;

use fathom_model::Nanos;

use super::{CommandRow, OptionArity, needed, row};
use crate::command_values::{DebugClass, Eta, IdleProfile, OutputFormat};
use crate::{fleet, value};

/// The command's own options, in the order of the usage.
pub(crate) const ROWS: &[CommandRow] = &[
    row("output", OptionArity::Value("FILE"), "Write the report to FILE.", |command, text| {
        command.output = Some(PathBuf::from(needed(text)?));
        Ok(())
    }),
    row(
        "output-format",
        OptionArity::Value("FORMATS"),
        "Report formats, separated by commas: normal, terse, json, json+.",
        |command, text| {
            command.formats = formats(needed(text)?)?;
            Ok(())
        },
    ),
    row("minimal", OptionArity::Nothing, "The same as --output-format=terse.", |command, _| {
        command.formats = vec![OutputFormat::Terse];
        Ok(())
    }),
    row("append-terse", OptionArity::Nothing, "Add the terse format to the others.", |command, _| {
        if command.formats.is_empty() {
            command.formats.push(OutputFormat::Normal);
        }
        command.formats.push(OutputFormat::Terse);
        Ok(())
    }),
    row(
        "terse-version",
        OptionArity::Value("N"),
        "Version of the terse format, 2 to 5 [default: 3].",
        |command, text| {
            command.terse_version = Some(value::integer_in(needed(text)?, 2, 5)? as u8);
            Ok(())
        },
    ),
    row(
        "status-interval",
        OptionArity::Value("TIME"),
        "Print the report so far this often.",
        |command, text| {
            command.status_interval = Some(at_least(value::seconds(needed(text)?)?, Nanos::from_millis(1))?);
            Ok(())
        },
    ),
    row(
        "aux-path",
        OptionArity::Value("DIR"),
        "Save the states of jobs with verify in this directory, and load them from there.",
        |command, text| {
            command.aux_path = Some(PathBuf::from(needed(text)?));
            Ok(())
        },
    ),
    row(
        "bandwidth-log",
        OptionArity::MaybeValue("NAME"),
        "Log the bandwidth of all jobs together to NAME-read_bw.log and the like [default: agg].",
        |command, text| {
            command.bandwidth_log = Some(text.unwrap_or("agg").to_owned());
            Ok(())
        },
    ),
    row(
        "trigger-file",
        OptionArity::Value("FILE"),
        "End the run as soon as FILE exists.",
        |command, text| {
            command.trigger_file = Some(PathBuf::from(needed(text)?));
            Ok(())
        },
    ),
    row("trigger-timeout", OptionArity::Value("TIME"), "End the run after this time.", |command, text| {
        command.trigger_timeout = Some(value::seconds(needed(text)?)?);
        Ok(())
    }),
    row(
        "trigger",
        OptionArity::Value("COMMAND"),
        "Run this shell command when a trigger ends the run.",
        |command, text| {
            command.trigger = Some(needed(text)?.to_owned());
            Ok(())
        },
    ),
    row("eta", OptionArity::Value("WHEN"), "Show progress: always, never or auto.", |command, text| {
        let words = [("always", Eta::Always), ("never", Eta::Never), ("auto", Eta::Auto)];
        command.eta = value::choice(needed(text)?, &words)?;
        Ok(())
    }),
    row(
        "eta-newline",
        OptionArity::Value("TIME"),
        "Start a new progress line this often.",
        |command, text| {
            command.eta_newline = Some(at_least(value::seconds(needed(text)?)?, Nanos::from_millis(1))?);
            Ok(())
        },
    ),
    row(
        "eta-interval",
        OptionArity::Value("TIME"),
        "Update progress this often, at least 250 ms.",
        |command, text| {
            command.eta_interval = Some(at_least(value::seconds(needed(text)?)?, Nanos::from_millis(250))?);
            Ok(())
        },
    ),
    row(
        "section",
        OptionArity::Value("NAME"),
        "Run only this section; may be given several times.",
        |command, text| match needed(text)? {
            name if name.starts_with("global") => Err("can't use global as only section".to_owned()),
            name => {
                command.sections.push(name.to_owned());
                Ok(())
            }
        },
    ),
    row(
        "idle-prof",
        OptionArity::Value("KIND"),
        "Report the idle time of the CPUs during the run, by the kernel's count: system, percpu, or calibrate alone.",
        |command, text| {
            let words = [
                ("system", IdleProfile::System),
                ("percpu", IdleProfile::PerCpu),
                ("calibrate", IdleProfile::Calibrate),
            ];
            command.idle_profile = Some(value::choice(needed(text)?, &words)?);
            Ok(())
        },
    ),
    row(
        "debug",
        OptionArity::Value("CLASSES"),
        "Show what happens inside: process, file, io (every request), random, parse, or all; nothing is shown of fio's other classes.",
        |command, text| {
            command.debug = debug_classes(needed(text)?)?;
            Ok(())
        },
    ),
    row(
        "inflate-log",
        OptionArity::Value("FILE"),
        "Print a log that log_store_compressed has compressed, and stop.",
        |command, text| {
            command.inflate_log = Some(PathBuf::from(needed(text)?));
            Ok(())
        },
    ),
    row("parse-only", OptionArity::Nothing, "Check the options and stop.", |command, _| {
        command.parse_only = true;
        Ok(())
    }),
    row("showcmd", OptionArity::Nothing, "Print the jobs as one command line and stop.", |command, _| {
        command.showcmd = true;
        Ok(())
    }),
    row("readonly", OptionArity::Nothing, "Refuse jobs that write or trim.", |command, _| {
        command.readonly = true;
        Ok(())
    }),
    row(
        "cmdhelp",
        OptionArity::MaybeValue("OPTION"),
        "Describe all options, or one, or all in full.",
        |command, text| {
            command.cmdhelp = Some(text.map(str::to_owned));
            Ok(())
        },
    ),
    row(
        "enghelp",
        OptionArity::MaybeValue("ENGINE[,OPTION]"),
        "List the engines, or the options of one.",
        |command, text| {
            command.enghelp = Some(text.map(str::to_owned));
            Ok(())
        },
    ),
    row("version", OptionArity::Nothing, "Print the version and stop.", |command, _| {
        command.version = true;
        Ok(())
    }),
    row("help", OptionArity::Nothing, "Print this page and stop.", |command, _| {
        command.help = true;
        Ok(())
    }),
    CommandRow {
        inert: true,
        ..row(
            "max-jobs",
            OptionArity::Value("N"),
            "Accepted without effect, as in fio: there is no table of jobs to size.",
            |_, text| value::integer(needed(text)?).map(drop),
        )
    },
    CommandRow {
        inert: true,
        ..row(
            "alloc-size",
            OptionArity::Value("KB"),
            "Accepted without effect: there is no shared memory pool to size.",
            |_, text| value::integer(needed(text)?).map(drop),
        )
    },
    CommandRow {
        inert: true,
        ..row(
            "warnings-fatal",
            OptionArity::Nothing,
            "Accepted without effect: fathom refuses what fio warns about.",
            |_, _| Ok(()),
        )
    },
    CommandRow {
        ours: true,
        ..row(
            "destroy-data",
            OptionArity::Value("DEVICE"),
            "Permit writing to DEVICE although it contains data.",
            |command, text| {
                command.destroy_data.push(PathBuf::from(needed(text)?));
                Ok(())
            },
        )
    },
    CommandRow {
        ours: true,
        ..row(
            "advise",
            OptionArity::Nothing,
            "Give advice on the jobs on standard error, as on a terminal.",
            |command, _| {
                command.advise = true;
                Ok(())
            },
        )
    },
    CommandRow {
        ours: true,
        ..row(
            "tui",
            OptionArity::Nothing,
            "Show a full-screen view while the jobs run; ? lists its keys.",
            |command, _| {
                command.tui = true;
                Ok(())
            },
        )
    },
    CommandRow {
        ours: true,
        ..row(
            "live",
            OptionArity::Value("STREAM"),
            "Stream live figures: ndjson[=FILE] to standard error or a file, openmetrics[=ADDR:PORT[,NAME...]] over HTTP.",
            |command, text| {
                command.live.push(needed(text)?.to_owned());
                Ok(())
            },
        )
    },
    CommandRow {
        ours: true,
        ..row("keep", OptionArity::Nothing, "Keep the run in the history.", |command, _| {
            command.keep = true;
            Ok(())
        })
    },
    fleet::ALL,
    fleet::OUT,
    fleet::JOIN,
    fleet::PREPARE,
    fleet::GRACE,
    fleet::START,
    fleet::SPLIT,
    fleet::PLAN,
];

fn at_least(span: Nanos, least: Nanos) -> Result<Nanos, String> {
    if span < least { Err(format!("it must be at least {} ms", least.as_millis())) } else { Ok(span) }
}

fn formats(text: &str) -> Result<Vec<OutputFormat>, String> {
    let mut formats = Vec::new();
    for word in text.split(',').map(str::trim) {
        let all = [OutputFormat::Normal, OutputFormat::Terse, OutputFormat::Json, OutputFormat::JsonPlus];
        let format = all.into_iter().find(|format| format.name() == word);
        let format = format
            .ok_or_else(|| format!("invalid output format {word} (valid are normal, terse, json, json+)"))?;
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    Ok(formats)
}

/// Classes separated by commas, each once; `all` are those that show anything.
fn debug_classes(text: &str) -> Result<Vec<DebugClass>, String> {
    let mut classes = Vec::new();
    for word in text.split(',').map(str::trim) {
        let named: Vec<DebugClass> = DebugClass::ALL
            .into_iter()
            .filter(|class| if word == "all" { class.is_traced() } else { class.name() == word })
            .collect();
        if named.is_empty() {
            let names: Vec<&str> = DebugClass::ALL.into_iter().map(DebugClass::name).collect();
            return Err(format!("debug mask {word} not found (valid are {}, all)", names.join(", ")));
        }
        classes.extend(named.into_iter().filter(|class| !classes.contains(class)).collect::<Vec<_>>());
    }
    Ok(classes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_lists() {
        use OutputFormat::{Json, JsonPlus, Normal, Terse};
        for (text, expected) in [
            ("json", Some(vec![Json])),
            ("normal,json", Some(vec![Normal, Json])),
            ("json+,normal,json+", Some(vec![JsonPlus, Normal])),
            ("terse", Some(vec![Terse])),
            ("xml", None),
            ("", None),
            ("json,", None),
        ] {
            assert_eq!(formats(text).ok(), expected, "{text}");
        }
    }
}
