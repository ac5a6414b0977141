//! The integration tests of `emmclab`, one module per topic, linked once.

#[cfg(feature = "bench")]
mod advise;
#[cfg(feature = "sim")]
mod apply_cuts;
#[cfg(feature = "sim")]
mod apply_random;
#[cfg(all(feature = "bench", feature = "sim"))]
mod apply_targets;
mod bad_input;
#[cfg(feature = "bench")]
mod bench_ends;
#[cfg(feature = "bench")]
mod bench_files;
#[cfg(feature = "bench")]
mod bench_leftovers;
#[cfg(all(feature = "bench", feature = "sim"))]
mod bench_options;
#[cfg(feature = "bench")]
mod bench_real;
#[cfg(feature = "bench")]
mod bench_restore;
#[cfg(feature = "bench")]
mod bench_same;
#[cfg(feature = "bench")]
mod bench_usage;
mod board_vendor;
#[cfg(feature = "bench")]
mod bus;
#[cfg(all(feature = "clone", feature = "sim"))]
mod clone;
mod command_line;
mod contract;
mod copied_sys;
#[cfg(all(feature = "clone", feature = "serve", feature = "twin"))]
mod dying;
#[cfg(all(feature = "clone", feature = "sim"))]
mod erase;
#[cfg(all(feature = "clone", feature = "sim"))]
mod erase_areas;
#[cfg(feature = "sim")]
mod erase_cuts;
#[cfg(all(feature = "clone", feature = "serve"))]
mod erase_faults;
mod exit_codes;
#[cfg(all(feature = "bench", feature = "sim"))]
mod ffu;
#[cfg(all(feature = "bench", feature = "sim"))]
mod ffu_cuts;
#[cfg(all(feature = "bench", feature = "serve", feature = "pages"))]
mod help;
mod hostile_arguments;
mod hostile_names;
#[cfg(feature = "html")]
mod html;
mod keys;
#[cfg(feature = "serve")]
mod lab;
#[cfg(feature = "sim")]
mod latencies;
mod live_card;
#[cfg(all(feature = "bench", feature = "sim"))]
mod lock;
#[cfg(all(feature = "bench", feature = "sim"))]
mod lock_cuts;
mod monitor;
mod pages;
#[cfg(feature = "html")]
mod paper;
mod printed_commands;
#[cfg(all(feature = "bench", feature = "sim"))]
mod rpmb;
mod safety;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "sim")]
mod sim;
#[cfg(feature = "sim")]
mod sim_pipeline;
mod snapshot_diff;
#[cfg(all(feature = "bench", feature = "sim"))]
mod study_bench;
mod study_source;
mod study_verdict;
mod support;
#[cfg(feature = "trace")]
mod trace;
#[cfg(feature = "trace")]
mod trace_export;
#[cfg(feature = "trace")]
mod trace_who;
mod transcripts;
#[cfg(feature = "bench")]
mod trim;
#[cfg(feature = "bench")]
mod trust;
#[cfg(feature = "twin")]
mod twin;
#[cfg(all(feature = "clone", feature = "trace", feature = "twin"))]
mod unbounded;
#[cfg(feature = "sim")]
mod vendor_report;
#[cfg(feature = "twin")]
mod what_if;
#[cfg(feature = "sim")]
mod whole_lives;
