//! The guest as a User-Mode Linux in simulated time: `build` makes its kernel, this runs a script in it.
//!
//! Same first file system, same scripts. The kernel is a process of this machine; clock and card come from `emmclab
//! serve --uml`. What the script prints and leaves goes to a folder of the host (hostfs), its talk with the host goes
//! through the controller's mailbox: neither takes time of the guest.

mod build;

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use emmc_lab::folder::{RunFolder, copy_files};
use emmc_lab::guest::{GuestFiles, HOST_FOLDER, lay_out};
use emmc_lab::kernel::Kernel;
use emmc_lab::machine::{CONSOLE, MachineSetup, Mailbox, start};

use crate::guest::machine::{Machine, Outcome, Show};
use crate::guest::rig;
use crate::guest::server::{Controller, Emmclab, Server};
use crate::guest::trial::{self, Host, Options, Served, attend, variable};
pub(crate) use build::{PACKAGES, RECIPE, build, check_host};

/// Runs a script with a card.
pub(crate) fn run(
    emmclab: Option<&Emmclab>,
    options: &Options,
    script: &str,
    programs: &[(&str, PathBuf)],
    host: &mut dyn Host,
) -> anyhow::Result<Outcome> {
    let emmclab = emmclab.context("a card without the program that serves it")?;
    let kernel = match &options.kernel {
        Some(named) => Kernel::find(Some(named))?,
        None => rig::uml_ready()?,
    };
    let controller = options.controller.unwrap_or(Controller::Cqe);
    let folder = RunFolder::new()?;
    let card = trial::card(emmclab, options, &folder.path)?;
    let environment =
        [variable("CONTROLLER", controller.name()), variable("DILATION", 1), variable("CLOCK", "virtual")];
    lay_out(&folder.path, &GuestFiles { script, environment: &environment, texts: &[], programs })?;
    let mailbox = Mailbox::bind(&folder.path)?;
    let mut more: Vec<OsString> = ["--record".into(), (&folder.path).into()].to_vec();
    more.extend(["--mailbox".into(), mailbox.path.clone().into()]);
    more.extend(options.accesses.iter().flat_map(|path| ["--accesses".into(), path.into()]));
    let server = Server::start_uml(emmclab, &card, &folder.path, controller, &more)?;
    let started = Instant::now();
    let parameters = &options.qemu;
    let setup = MachineSetup { kernel: &kernel, folder: &folder.path, memory_mib: options.memory_mib, parameters };
    let mut child = start(&setup)?;
    let control = match mailbox.accept(&mut child) {
        Ok(control) => control,
        Err(error) => {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
            return Err(error.into());
        }
    };
    let shared = folder.path.join(HOST_FOLDER);
    let show = options.show != Show::Nothing;
    let machine = Machine::of(child, control, &shared, &folder.path, ("User-Mode Linux", CONSOLE), show)?;
    let served =
        Served { folder: &folder.path, card: &card, emmclab: Some(emmclab), server: Some(server), has_record: true };
    let outcome = attend(machine, served, options, host);
    if let (Ok(_), Some(out)) = (&outcome, &options.out) {
        copy_files(&shared.join("out"), out).with_context(|| out.display().to_string())?;
    }
    if options.show == Show::Console {
        eprint!("{}", String::from_utf8_lossy(&fs::read(folder.path.join(CONSOLE)).unwrap_or_default()));
    }
    if show {
        println!("guest: {:.2} s of real time", started.elapsed().as_secs_f64());
    }
    outcome
}
