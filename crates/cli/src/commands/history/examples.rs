//! Examples of the commands of `fathom history`, below the options in their help.

/// Of `history list`.
pub const LIST: &str = "\
Examples:
  fathom history list --newest 10
  fathom history list --host web1 --since 7d --text kernel
  fathom history list --kind bench --tag before --json";

/// Of `history show`.
pub const SHOW: &str = "\
Examples:
  fathom history show                 the newest run
  fathom history show 17 --show-fio
  fathom history show last~1 --format markdown";

/// Of `history trend`.
pub const TREND: &str = "\
Examples:
  fathom history trend rand-read.read.iops --by device
  fathom history trend rand-read.p99 --by hour --since 2026-11-01";

/// Of `history tag`.
pub const TAG: &str = "\
Examples:
  fathom history tag before 12 14 16
  fathom history tag before 14 --remove
  fathom compare tag:before tag:after";

/// Of `history note`.
pub const NOTE: &str = "\
Examples:
  fathom history note 17 'after the kernel update'
  fathom history note 17 --remove";

/// Of `history diff`.
pub const DIFF: &str = "\
Examples:
  fathom history diff last~1 last
  fathom history diff 12 17 --format markdown";

/// Of `history size`.
pub const SIZE: &str = "\
Examples:
  fathom history size
  fathom history size --json";

/// Of `history rm`.
pub const RM: &str = "\
Examples:
  fathom history rm 17
  fathom history rm 3 4 5
  fathom history rm --older-than 90d --dry-run
  fathom history rm --newest 100 --yes";

/// Of `history import`.
pub const IMPORT: &str = "\
Examples:
  fathom history import fio.json ioping.txt
  fathom history import page.txt --type 'aws-gp2?size=50GiB' --date 2017-09-14
  xclip -o | fathom history import -";

/// Of `history export`.
pub const EXPORT: &str = "\
Examples:
  fathom history export 17 > run17.json
  fathom history export --since 30d --format csv -o figures.csv
  fathom history export --format openmetrics -o /var/lib/node_exporter/fathom.prom";
