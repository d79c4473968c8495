internal import InletCore

/// The processes of this machine that have files open, as far as `/proc` shows them to this user (proc(5)). The helper
/// looks (`writers.c`): a confined process cannot.
///
/// It answers two questions that a lease cannot: who the writer is, and whether there is one where a lease is not
/// allowed. It sees less than a lease: no process of another user without CAP_SYS_PTRACE, none outside this PID
/// namespace, no server in the kernel, nothing on other machines. A file not found here may still have a writer.
package enum OpenWriters {
    /// A process that may write to a file.
    package struct WriterProcess: Sendable, Hashable {
        package var process: Int32
        /// Its `comm`: the first 15 bytes of its program's name, which it can change.
        package var name: String
        /// It has closed the file, but still maps it for writing.
        package var isMapping = false

        /// `ffmpeg (process 4711)`, escaped for terminals and logs.
        package var text: String { "\(DisplayText.escape(name)) (process \(process))" }
    }

    /// The processes that keep a file system mounted: those with an open file or folder, a working or root folder, or a
    /// mapping on it. At most 16. Asks no file server. Blocks.
    ///
    /// - Parameter device: its `st_dev`.
    package static func users(of device: UInt64) -> [WriterProcess] {
        // Without a helper nobody is known.
        (try? ProcessHost.shared())?.users(of: device) ?? []
    }
}
