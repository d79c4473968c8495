import Foundation
import InletTestSupport
import SystemPackage

/// Runs a program to its end and returns its trimmed output; an exit code other than 0 is thrown.
@discardableResult
func run(_ program: String, _ arguments: String...) throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
        throw ProgramFailed(program: program, code: process.terminationStatus)
    }
    return text.trimmingCharacters(in: .whitespacesAndNewlines)
}

struct ProgramFailed: Error {
    let program: String
    let code: Int32
}

/// Another process that runs until the value goes: the far side of locks and leases.
final class OtherProcess {
    private let process = Process()
    private let output = Pipe()
    private let input = Pipe()

    /// Starts a shell script and waits for the first line that it prints.
    init(_ script: String, _ arguments: String...) throws {
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", script, "sh"] + arguments
        process.standardOutput = output
        process.standardInput = input
        try process.run()
        Leash.hold(process.processIdentifier)
        _ = output.fileHandleForReading.availableData
    }

    var id: Int32 { process.processIdentifier }

    /// Kills it and waits until it is gone.
    func kill() {
        if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }

    deinit { kill() }
}

/// A bound datagram socket in the file system.
final class DatagramSocket {
    let path: FilePath
    private let number: CInt

    init(at path: FilePath) throws {
        self.path = path
        number = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.string.utf8) }
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard code == 0 else { throw Errno(rawValue: errno) }
    }

    /// The datagram that waits, nil without one.
    func receive() -> String? {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(number, &bytes, bytes.count, CInt(MSG_DONTWAIT))
        return count < 0 ? nil : String(decoding: bytes[..<count], as: UTF8.self)
    }

    /// The descriptor that came with the datagram that waits; nil without one. Its owner closes it.
    func receiveDescriptor() -> CInt? {
        // struct cmsghdr: its length, SOL_SOCKET, SCM_RIGHTS, then the descriptor, with room to align it.
        var control = [UInt64](repeating: 0, count: 3)
        return control.withUnsafeMutableBytes { room in
            var message = msghdr()
            message.msg_control = room.baseAddress
            message.msg_controllen = room.count
            guard recvmsg(number, &message, CInt(MSG_DONTWAIT)) >= 0, message.msg_controllen >= 20 else { return nil }
            return room.load(fromByteOffset: 16, as: CInt.self)
        }
    }

    deinit { close(number) }
}
