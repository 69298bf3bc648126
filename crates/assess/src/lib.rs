//! Commands that look at a target, run a plan against it and look at what came out: `bench` and its suites.
//!
//! The only place that decides what to run. Prints nothing and stores nothing: callers are informed through
//! [`StepObserver`] and get a [`fathom_record::RunRecord`]. Own commands build options, never a plan, so that the fio
//! command line of a row is the truth about it.

#![forbid(unsafe_code)]

pub mod advise;
pub mod against;
mod bench;
mod candidates;
mod catalogue;
pub mod compare;
mod conditions;
mod control;
mod doctor;
mod drain;
mod error;
mod expectations;
mod findings;
pub mod fleet;
mod flushes;
pub mod identify;
mod inspection;
mod launch;
pub mod launcher;
mod machine;
mod measure;
pub mod monitor;
pub mod need;
mod observed_load;
pub mod ping;
mod plan;
mod planned;
mod precision;
pub mod prepare;
mod prices;
mod profile;
pub mod published;
mod published_rates;
mod remedies;
mod repeatable;
pub mod schedule;
pub mod simulate;
mod simulated;
mod site;
mod suite;
pub mod surface;
pub mod sweep;
mod target;
mod together;
mod traffic;
mod twin;
mod until_steady;
mod working_file;

pub use bench::{at_need, run};
pub use candidates::{candidates, volume_size};
pub use catalogue::{VolumeTypes, read_catalogue};
pub use conditions::enter_conditions;
pub use control::{MeasurementEnd, MeasurementHandle, TestKeeper, begin_measurement, follow, stuck_note};
pub use control::{MeasurementEvent, MeasurementStep, StepObserver};
pub use doctor::doctor_facts;
pub use error::{AssessError, ErrorKind};
pub use expectations::ExpectationSettings;
pub use findings::findings_of;
pub use identify::EarlierIdentification;
pub use machine::{engine_rows, host_facts};
pub use observed_load::{observed_load_of, open_observed_load, refused_load};
pub use plan::{BenchPlan, BenchSettings, Effort, PlanCost};
pub use planned::PlannedTest;
pub use precision::{PrecisionSettings, percent_text};
pub use prices::{PriceStore, price_list, today};
pub use profile::{PROFILES, UseProfile, profiles};
pub use simulated::{PlanTargets, SimulatedVolume, is_simulated, session_for};
pub use site::RunSettings;
pub use site::Site;
pub use suite::{Ending, Profile, SUITES, Suite, SuiteTest};
pub use target::BenchTarget;
pub use together::PlannedTarget;
pub use traffic::{CreditUse, OfferedTraffic, PlannedTraffic, TestFile};
pub use twin::{
    TWINS_VARIABLE, TwinDifference, TwinStore, check_name as check_twin_name,
    differences as twin_differences, read_twin,
};
pub use until_steady::Rounds;
