//! `sim`: the virtual card, in simulated time.

pub(crate) mod check;
pub(crate) mod create;
#[cfg(feature = "serve")]
pub(crate) mod ctl;
pub(crate) mod info;
#[cfg(feature = "twin")]
pub(crate) mod life;
pub(crate) mod pipeline;
pub(crate) mod power_cut;
pub(crate) mod profiles;
pub(crate) mod run;
#[cfg(feature = "twin")]
pub(crate) mod what_if;

use crate::CommandResult;
use crate::cli::SimCommand;
use crate::output::Output;

pub(crate) fn run(command: &SimCommand, output: &mut Output) -> CommandResult {
    match command {
        SimCommand::Profiles(args) => profiles::run(args, output),
        SimCommand::Create(args) => create::run(args, output),
        SimCommand::Run(args) => run::run(args, output),
        SimCommand::Info(args) => info::run(args, output),
        SimCommand::Check(args) => check::run(args, output),
        SimCommand::Pipeline(args) => pipeline::run(args, output),
        SimCommand::PowerCut(args) => power_cut::run(args, output),
        #[cfg(feature = "twin")]
        SimCommand::WhatIf(args) => what_if::run(args, output),
        #[cfg(feature = "twin")]
        SimCommand::Life(args) => life::run(args, output),
        #[cfg(feature = "serve")]
        SimCommand::Ctl(args) => ctl::run(args, output),
    }
}
