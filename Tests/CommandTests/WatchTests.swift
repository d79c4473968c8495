import Foundation
import SystemPackage

/// What other programs do to files.
enum Tool {
    static func run(_ program: String, _ arguments: String...) throws {
        let process = try Process.run(URL(fileURLWithPath: program), arguments: arguments)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw InletProcess.Unexpected(description: "\(program) ended with \(process.terminationStatus)")
        }
    }

    /// Writes to a path of any bytes.
    static func write(_ content: Data, to path: [UInt8]) throws {
        let number = (path + [0]).map { CChar(bitPattern: $0) }.withUnsafeBufferPointer { name in
            name.baseAddress.map { open($0, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644) } ?? -1
        }
        guard number >= 0 else { throw Errno(rawValue: errno) }
        let file = FileDescriptor(rawValue: number)
        try file.closeAfter { _ = try file.writeAll(content) }
    }
}
