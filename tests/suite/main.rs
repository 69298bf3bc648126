//! Tests of the whole program on real devices, and of the fixtures they stand on.
//!
//! Each module is one subject. Tests create their devices with the harness in `../harness`, state with `need!` what the
//! machine must have, and request their turn: `../harness/turn.rs` describes which tests run concurrently.

#![forbid(unsafe_code)]

mod against;
mod async_is_not;
mod bad_input;
mod dd;
mod doctor;
mod doubts;
mod expectations;
mod findings;
mod findings_caps;
mod findings_device;
mod fio_clients;
mod fio_corpus;
mod fio_logs;
mod fio_output;
mod fixtures;
mod fleet;
mod fleet_truth;
mod guard_matrix;
mod guard_race;
mod guarded;
mod history;
mod hostile_names;
mod identify;
mod imported_fio;
mod killed;
mod launchers;
mod live_view;
mod monitor;
mod monitor_mounts;
mod open_loop;
mod ours;
mod ping;
mod postgres;
mod prepare;
mod profiles;
mod recordings;
mod schedules;
mod stalls;
mod stopped;
mod surface;
mod sweep;
mod together;
mod truth_bench;
mod truth_bssplit;
mod truth_caps;
mod truth_kernel;
mod truth_latency;
mod truth_mix;
mod truth_order;
mod truth_payload;
mod truth_record;
mod truth_sync;
mod truth_witness;
mod verify;
