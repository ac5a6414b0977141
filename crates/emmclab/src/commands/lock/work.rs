//! What a change of the lock has in common on every card: passwords, checks before, consent, the work.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use emmc_analysis::plan::CardIdentity;
use emmc_linux::hold::{self, Point};
use emmc_port::lock::{Ended, LockPort, LockRegisters, Order, Password, carry_out};
use emmc_port::{CardData, Consent};
use emmc_report::visible;

use super::{LockDocument, refused, registers, report, unable};
use crate::cli::{BenchArgs, LockChange, LockForceEraseArgs, LockSetArgs};
use crate::commands::apply::consent::{SerialQuestion, say};
use crate::commands::bench::consent::Question;
use crate::commands::secret_file;
use crate::save::Refused;

/// What the user wants.
pub(super) struct Wanted<'a> {
    command: &'a LockChange,
    /// The target, as named.
    pub(super) target: &'a str,
    order: Order,
    warnings: Vec<String>,
    is_quiet: bool,
}

impl<'a> Wanted<'a> {
    /// Reads the passwords.
    ///
    /// Errors: no file, or no password in it.
    pub(super) fn read(command: &'a LockChange, is_quiet: bool) -> anyhow::Result<Self> {
        let mut warnings = Vec::new();
        let mut password = |path: &Path| {
            let content = secret_file::read(path, "password", Password::READ_BYTES_MAX, &mut warnings)?;
            let failed = |error| anyhow::anyhow!("{}: not a password: {error}", path.display());
            Password::from_file(&content).map_err(failed)
        };
        let (target, order) = match command {
            LockChange::Set(args) => {
                let is_twice = args.old.as_deref() == Some(Path::new("-")) && args.password == Path::new("-");
                anyhow::ensure!(!is_twice, "only one of --old and --password can be standard input");
                let old = args.old.as_deref().map(&mut password).transpose()?;
                (&args.target, Order::Set { old, new: password(&args.password)?, lock: args.lock })
            }
            LockChange::Clear(args) => (&args.target, Order::Clear(password(&args.password)?)),
            LockChange::On(args) => (&args.target, Order::Lock(password(&args.password)?)),
            LockChange::Off(args) => (&args.target, Order::Unlock(password(&args.password)?)),
            LockChange::ForceErase(args) => (&args.target, Order::ForceErase),
        };
        Ok(Self { command, target: &target.target, order, warnings, is_quiet })
    }

    /// Its name in documents.
    pub(super) fn action(&self) -> &'static str {
        match self.command {
            LockChange::Set(_) => "set",
            LockChange::Clear(_) => "clear",
            LockChange::On(_) => "on",
            LockChange::Off(_) => "off",
            LockChange::ForceErase(_) => "force-erase",
        }
    }

    /// Whether the card takes passwords; returns what its registers say.
    ///
    /// Errors: it takes none; [`Refused`]: switched off for ever.
    pub(super) fn check(&self, card: &CardData) -> anyhow::Result<LockRegisters> {
        let found = registers(self.target, card)?;
        if found.supported == Some(false) {
            return Err(unable(self.target, "it takes no passwords (CSD: no command class 7); nothing was sent"));
        }
        if found.disabled == Some(true) {
            return Err(refused(self.target, "passwords are switched off for ever (USER_WP)"));
        }
        Ok(found)
    }

    /// Shows what can be lost, and asks.
    ///
    /// Errors: [`Refused`]: the user did not agree.
    pub(super) fn ask(&self, card: &CardIdentity, device_name: &str, is_device: bool) -> Result<Consent, Refused> {
        match self.command {
            LockChange::Set(args) => self.ask_serial(args, card, is_device),
            LockChange::ForceErase(args) => self.ask_name(args, card, device_name, is_device),
            _ => Ok(Consent::REVERSIBLE),
        }
    }

    fn ask_serial(&self, args: &LockSetArgs, card: &CardIdentity, is_device: bool) -> Result<Consent, Refused> {
        let mut lost = vec![
            "with the password, all content: only a forced erase, which loses it, unlocks the card then".to_owned(),
            "the card itself: with permanently protected groups, or with secure write protection on, it refuses that \
             erase too"
                .to_owned(),
        ];
        if is_device {
            lost.push(
                "the card, to Linux: a locked card cannot be tuned, so a kernel may not find one that is locked at power-up"
                    .into(),
            );
        }
        if !self.is_quiet {
            say(&format!("{}: {}", self.target, described(card)));
            say("  a password is set: from the next power-up on the card is locked until it gets it");
            lost.iter().for_each(|lost| say(&format!("  can be lost: {lost}")));
        }
        let question = SerialQuestion {
            target: self.target,
            card,
            given: args.permanent.as_deref(),
            what: "nothing reveals a forgotten password",
            lost: &lost,
            is_quiet: self.is_quiet,
        };
        question.ask().map_err(Refused)
    }

    fn ask_name(
        &self,
        args: &LockForceEraseArgs,
        card: &CardIdentity,
        device_name: &str,
        is_device: bool,
    ) -> Result<Consent, Refused> {
        let told = format!(
            "{}: {}\n  the content of the user area and the general purpose partitions is lost, and the password is \
             removed\n  the card may take up to 3 minutes",
            visible(self.target),
            visible(&described(card))
        );
        let without = "its content would be lost: --destroy allows that; nothing was sent";
        let question =
            Question { told, without, called: self.target, name: device_name, is_device, is_quiet: self.is_quiet };
        let LockForceEraseArgs { destroy, yes_i_mean, .. } = args;
        question.ask(&BenchArgs { destroy: *destroy, yes_i_mean: yes_i_mean.clone(), ..BenchArgs::default() })?;
        Ok(Consent::CONTENT_LOST)
    }

    /// Does it, and fills in what came of it.
    pub(super) fn carry(
        &self,
        port: &mut dyn LockPort,
        consent: Consent,
        stop: &AtomicBool,
        document: &mut LockDocument,
    ) {
        let done = carry_out(port, &self.order, consent, &mut || {
            hold::reached(Point::Step, stop);
            !stop.load(Ordering::Relaxed)
        });
        let (ended, reason) = match done.ended {
            Ended::Done => ("done", None),
            Ended::Already => ("already", None),
            Ended::Stopped => ("stopped", Some("by a signal, between two requests".to_owned())),
            Ended::Refused(reason) => ("refused", Some(reason)),
            Ended::Surprise(reason) => ("surprise", Some(reason)),
            Ended::Lost(reason) => ("lost", Some(reason)),
        };
        (document.ended, document.reason) = (Some(ended), reason);
        (document.was_locked, document.locked) = (done.was_locked, done.is_locked);
        document.has_password = match (&self.order, ended) {
            (Order::Clear(_) | Order::ForceErase, "done") => Some(false),
            (Order::Lock(_) | Order::Unlock(_), "done") => Some(true),
            // What was there before stays unknown where the new one was not taken.
            (Order::Set { .. }, _) if done.is_set == Some(true) => Some(true),
            _ => done.is_locked.filter(|locked| *locked),
        };
        document.warnings.clone_from(&self.warnings);
        document.next = report::next(document);
    }
}

fn described(card: &CardIdentity) -> String {
    let [product, serial] = [&card.product, &card.serial].map(|value| value.as_deref().unwrap_or("unknown"));
    format!("{product}, serial number {serial}")
}
