//! `cargo xtask guest run`: one script in one guest.

use std::fs;

use anyhow::{Context, bail, ensure};

use crate::guest::server::{Controller, Emmclab};
use crate::guest::{options, programs, rig, trial, uml};

/// Runs it; the script's exit status.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<u8> {
    let (options, rest) = options::parse(args).context("guest run")?;
    ensure!(
        !options.twice && !options.both,
        "guest run: --twice and --both are for the trials in a script's head (guest test)"
    );
    let [script] = rest.as_slice() else { bail!("guest run: expected one script, not {rest:?}") };
    let script = fs::read_to_string(script).with_context(|| script.clone())?;
    let script = super::test::with_says(&script);
    let is_ours = options.controller.is_some_and(|controller| controller != Controller::Qemu);
    let emmclab = if is_ours { Some(Emmclab::build()?) } else { None };
    let programs = programs::needed(&script)?;
    let outcome = if options.uml {
        uml::run(emmclab.as_ref(), &options, &script, &programs, &mut trial::Nobody)?
    } else {
        trial::run(&rig::ready()?, emmclab.as_ref(), &options, &script, &programs, &mut trial::Nobody)?
    };
    outcome.status.context("the guest stopped before the script ended")
}
