//! Why a ring, context or mapping could not be set up.

/// The failed action, and the system's error.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempted}: {}", crate::io::describe(source))]
pub struct SetupError {
    /// The step that failed.
    pub step: SetupStep,
    /// The step in words, with the sizes and names it was tried with.
    pub attempted: String,
    /// The system's answer.
    pub source: std::io::Error,
}

/// The steps that setting up can fail in; the remedy depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupStep {
    /// More slots were asked for than the interface can hold.
    Depth,
    /// Mapping the buffers.
    Buffers,
    /// Making the kernel's ring or context.
    Kernel,
    /// Registering the buffers with the ring.
    RegisterBuffers,
    /// Registering the files with the ring.
    RegisterFiles,
    /// Mapping the file.
    Map,
}

impl SetupError {
    pub(crate) fn new(step: SetupStep, attempted: String, source: std::io::Error) -> Self {
        SetupError { step, attempted, source }
    }
}
