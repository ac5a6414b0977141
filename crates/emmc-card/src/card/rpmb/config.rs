//! Requests for the device configuration, which switches secure write protection.
//!
//! Assumed: a write counts as one, like a write of data, and a reset clears SECURE_WP_MASK.

use emmc_regs::rpmb::{ConfigByte, DATA_BYTES, Frame, Request, RpmbResult, SecureWriteProtection, is_authentic, mac};

use super::{Rpmb, RpmbStore};

impl Rpmb {
    /// Checks and performs a change of the device configuration; returns the result frame.
    pub(super) fn write_config(&mut self, frames: &[Frame], reliable: bool, store: &mut dyn RpmbStore) -> Box<Frame> {
        let code = Request::WriteConfig as u16;
        let Some(key) = self.key else { return Box::new(self.reply(code, RpmbResult::NO_KEY)) };
        let [frame] = frames else { return Box::new(self.reply(code, RpmbResult::GENERAL_FAILURE)) };
        let value = frame.data()[DATA_BYTES - 1];
        let byte = ConfigByte::at(frame.address());
        let result = if store.secure_wp().is_none() || !reliable || frame.count() != 1 || value > 1 {
            RpmbResult::GENERAL_FAILURE
        } else if self.counter == u32::MAX {
            RpmbResult::WRITE_FAILURE
        } else if byte.is_none() {
            RpmbResult::ADDRESS_FAILURE
        } else if !is_authentic(&key, frames) {
            RpmbResult::AUTHENTICATION_FAILURE
        } else if frame.counter() != self.counter {
            RpmbResult::COUNTER_FAILURE
        } else {
            match byte {
                Some(ConfigByte::SecureWpModeEnable) => store.set_secure_wp(value == 1),
                _ => self.allows_wp_changes = value == 1,
            }
            self.counter += 1;
            RpmbResult::OK
        };
        let mut reply = self.reply(code, result);
        reply.set_counter(self.counter);
        reply.set_address(frame.address());
        reply.sign(&mac(&key, std::slice::from_ref(&reply)));
        Box::new(reply)
    }

    /// The answer to a read of the device configuration.
    pub(super) fn config_frame(&self, frames: &[Frame], store: &dyn RpmbStore) -> Box<Frame> {
        let code = Request::ReadConfig as u16;
        let Some(key) = &self.key else { return Box::new(self.reply(code, RpmbResult::NO_KEY)) };
        let (Some(is_on), [frame]) = (store.secure_wp(), frames) else {
            return Box::new(self.reply(code, RpmbResult::GENERAL_FAILURE));
        };
        let mut reply = self.reply(code, RpmbResult::OK);
        reply.set_data(&SecureWriteProtection { is_on, allows_changes: self.allows_wp_changes }.to_data());
        reply.set_nonce(&frame.nonce());
        reply.sign(&mac(key, std::slice::from_ref(&reply)));
        Box::new(reply)
    }
}
