internal import InletCore
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// Where lines go; whole lines, in the order they came, whatever thread writes them.
final class LogSink: Sendable {
    private enum Target: Sendable {
        case standardError
        case standardOutput
        case file(FileDescriptor)
    }

    private let target: Target
    private let order = Mutex(())

    /// - Parameter output: `stderr`, `stdout`, or a file's path, which is appended to.
    init(_ output: String) throws(SystemError) {
        switch output {
        case "stderr": target = .standardError
        case "stdout": target = .standardOutput
        default:
            do {
                let options: FileDescriptor.OpenOptions = [.append, .create, .closeOnExec]
                target = .file(
                    try FileDescriptor.open(
                        FilePath(output), .writeOnly, options: options, permissions: [.ownerReadWrite, .groupRead]))
            } catch {
                throw SystemError(call: "open", path: FilePath(output), code: (error as? Errno) ?? .ioError)
            }
        }
    }

    /// Lines that cannot be written are lost: the log must never stop the agent.
    func write(_ line: [UInt8]) {
        order.withLock { _ in
            switch target {
            case .standardError: _ = ProcessSetup.writeStandardError(line)
            case .standardOutput: _ = ProcessSetup.writeStandardOutput(line)
            case .file(let descriptor): _ = try? descriptor.writeAll(line)
            }
        }
    }
}
