//! The update: download, count, installation. It stops at the first surprise, and the card leaves the mode whatever
//! happens.

use emmc_regs::ext_csd::ExtCsd;

use super::{FfuCommand, FfuMode, FfuPort, FfuState, status_text};
use crate::{Consent, NotAgreed, PortError};

/// How an image is sent, and what was agreed to.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// How.
    pub mode: FfuMode,
    /// At most this much in one command, whole sectors of the card. Unit: bytes.
    pub chunk_bytes: u32,
    /// To what cannot be reverted.
    pub consent: Consent,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The next command is about to be sent; these bytes of the image are with the card.
    Sends {
        /// Unit: bytes.
        sent_bytes: usize,
    },
}

/// How an update ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The card reports that it has installed the image; it runs after the next reset or power cycle.
    Installed,
    /// All of the image is with the card, which installs it at the next reset or power cycle.
    PowerCycleDue,
    /// As asked, between two commands.
    Stopped,
    /// The card refused a command, or the installation.
    Refused(String),
    /// The card is not as expected.
    Surprise(String),
    /// It does not answer. Whether the last command had an effect is not known.
    Lost(String),
}

/// What came of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// How it ended.
    pub ended: Ended,
    /// What was sent with a good answer. Unit: bytes.
    pub sent_bytes: usize,
    /// INSTALL was sent.
    pub is_install_sent: bool,
    /// The card's registers at the end; absent if it does not answer.
    pub state: Option<FfuState>,
}

/// Downloads an image and has the card install it. `watch` is called before each command; it returns whether to go on.
pub fn carry_out(port: &mut dyn FfuPort, image: &[u8], order: &Order, watch: &mut dyn FnMut(Event) -> bool) -> Update {
    let mut run = Run { port, order, watch, sent_bytes: 0, is_install_sent: false, may_be_in_mode: false };
    let ended = run.all(image).unwrap_or_else(|ended| ended);
    if run.may_be_in_mode {
        if order.mode == FfuMode::Open && matches!(ended, Ended::Lost(_) | Ended::Refused(_)) {
            // The card may still wait for data, and takes nothing else until CMD12.
            let _ = run.port.update(&FfuCommand::stop());
        }
        // What it answers is in the state: MODE_CONFIG.
        let _ = run.port.update(&FfuCommand::leave());
    }
    let state = run.state().ok();
    Update { ended, sent_bytes: run.sent_bytes, is_install_sent: run.is_install_sent, state }
}

struct Run<'a> {
    port: &'a mut dyn FfuPort,
    order: &'a Order,
    watch: &'a mut dyn FnMut(Event) -> bool,
    sent_bytes: usize,
    is_install_sent: bool,
    /// The card may be in the mode, and has to leave it.
    may_be_in_mode: bool,
}

impl From<PortError> for Ended {
    fn from(error: PortError) -> Self {
        match error {
            PortError::Refused { .. } => Self::Refused(error.to_string()),
            PortError::Lost { .. } => Self::Lost(error.to_string()),
        }
    }
}

impl From<NotAgreed> for Ended {
    fn from(error: NotAgreed) -> Self {
        Self::Refused(error.to_string())
    }
}

impl Run<'_> {
    fn state(&mut self) -> Result<FfuState, PortError> {
        Ok(FfuState::of(&ExtCsd::from_bytes(self.port.ext_csd()?)))
    }

    /// Sends a command that enters the mode, or is in it; `stays`: it does not leave it.
    fn send(&mut self, command: &FfuCommand<'_>, stays: bool) -> Result<(), Ended> {
        if !(self.watch)(Event::Sends { sent_bytes: self.sent_bytes }) {
            return Err(Ended::Stopped);
        }
        self.may_be_in_mode = true;
        self.port.update(command)?;
        self.may_be_in_mode = stays;
        Ok(())
    }

    fn all(&mut self, image: &[u8]) -> Result<Ended, Ended> {
        let Order { mode, consent, .. } = *self.order;
        let before = self.state()?;
        match before.mode {
            Some(0) => {}
            // An earlier update ended without leaving it.
            Some(1) => self.send(&FfuCommand::leave(), false)?,
            mode => return Err(surprise(format!("MODE_CONFIG is {:#04x}, a mode of the maker", mode.unwrap_or(0)))),
        }
        let Some(address) = before.argument else { return Err(surprise("FFU_ARG is not known".into())) };
        if mode.stays() {
            self.send(&FfuCommand::enter(consent)?, true)?;
        }
        let chunk_bytes = if mode.is_by_block() { super::BLOCK_BYTES } else { self.order.chunk_bytes as usize };
        for chunk in image.chunks(chunk_bytes.max(super::BLOCK_BYTES)) {
            self.send(&FfuCommand::download(mode, address, chunk, consent)?, mode.stays())?;
            self.sent_bytes += chunk.len();
            self.count()?;
        }
        if mode.stays() {
            self.send(&FfuCommand::leave(), false)?;
        }
        let done = self.state()?;
        if !done.counts(image.len()) {
            let count = done.programmed.unwrap_or(0);
            let what = format!("the card counts {count} sectors as programmed, and {} bytes were sent", image.len());
            return Err(surprise(what));
        }
        if done.operation_codes != Some(true) {
            return Ok(Ended::PowerCycleDue);
        }
        self.install(&done)
    }

    /// After a chunk: zero means that the card has to get all of it again, and more than was sent that it counts
    /// something else. Fewer are not stored yet.
    fn count(&mut self) -> Result<(), Ended> {
        let state = self.state()?;
        let count = state.programmed.unwrap_or(0);
        let sent = self.sent_bytes;
        if count == 0 {
            return Err(surprise(format!("the card counts no sector as programmed after {sent} bytes")));
        }
        if u64::from(count) * 512 > sent as u64 {
            return Err(surprise(format!("the card counts {count} sectors as programmed after {sent} bytes")));
        }
        Ok(())
    }

    fn install(&mut self, state: &FfuState) -> Result<Ended, Ended> {
        let command = FfuCommand::install(state.install_ms(), self.order.consent)?;
        if !(self.watch)(Event::Sends { sent_bytes: self.sent_bytes }) {
            return Err(Ended::Stopped);
        }
        (self.is_install_sent, self.may_be_in_mode) = (true, true);
        self.port.update(&command)?;
        let state = self.state()?;
        self.may_be_in_mode = state.mode != Some(0);
        match state.status {
            Some(0) => Ok(Ended::Installed),
            status => {
                let status = status.unwrap_or(0xff);
                Err(Ended::Refused(format!("FFU_STATUS is {status:#04x}: {}", status_text(status))))
            }
        }
    }
}

fn surprise(what: String) -> Ended {
    Ended::Surprise(what)
}
