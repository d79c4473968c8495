import Foundation
import Synchronization
import SystemPackage

func remove(_ path: FilePath) throws { try FileManager.default.removeItem(atPath: path.string) }

func move(_ path: FilePath, to target: FilePath) throws {
    try FileManager.default.moveItem(atPath: path.string, toPath: target.string)
}

/// The same where a file is there, which it replaces.
func move(_ path: FilePath, over target: FilePath) throws {
    guard rename(path.string, target.string) == 0 else { throw Errno(rawValue: errno) }
}

/// A time that can be put back exactly.
let someTime = Date(timeIntervalSince1970: 1_700_000_000)

func setTime(_ path: FilePath) throws {
    try FileManager.default.setAttributes([.modificationDate: someTime], ofItemAtPath: path.string)
}

/// Edits a file in place as `exiftool -P` does: another content of the same length, and its time put back.
func edit(_ path: FilePath, _ text: String) throws {
    let descriptor = try FileDescriptor.open(path, .writeOnly, options: .closeOnExec)
    try descriptor.closeAfter { _ = try descriptor.writeAll(Array(text.utf8)) }
    try setTime(path)
}

/// Runs `body` while the file is open for writing.
func whileWriting(_ path: FilePath, _ body: () async throws -> Void) async throws {
    let descriptor = try FileDescriptor.open(path, .writeOnly, options: .closeOnExec)
    do {
        try await body()
    } catch {
        try descriptor.close()
        throw error
    }
    try descriptor.close()
}

/// Whether the folder can hold files, and is on another file system than temporary directories.
func isOtherFileSystem(_ path: String) -> Bool {
    let manager = FileManager.default
    let devices = [path, NSTemporaryDirectory()].map {
        (try? manager.attributesOfItem(atPath: $0)[.systemNumber] as? NSNumber)?.intValue
    }
    return devices[0] != nil && devices[0] != devices[1] && manager.isWritableFile(atPath: path)
}

/// A number that tasks share.
final class Count: Sendable {
    private let number = Mutex(0)
    var value: Int { number.withLock(\.self) }

    @discardableResult
    func add() -> Int {
        number.withLock { number in
            number += 1
            return number
        }
    }

    /// Takes one; false when there is none.
    func take() -> Bool {
        number.withLock { number in
            defer { number = max(0, number - 1) }
            return number > 0
        }
    }
}
