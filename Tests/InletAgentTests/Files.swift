import Foundation
import InletAgent
import InletCore
import InletLinux
import InletTestSupport
import ServiceLifecycle
import Synchronization
import SystemPackage

/// Whether something is at the path, seen without following a symlink.
func isThere(_ path: FilePath) -> Bool { (try? FileLook.look(at: path)).map { $0 != .missing } ?? false }

func text(_ path: FilePath) throws -> String {
    String(decoding: try DurableFile.read(path, limit: 1 << 20), as: UTF8.self)
}

/// The names in a folder.
func names(in directory: FilePath) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory.string).sorted()
}

func remove(_ path: FilePath) throws { try FileManager.default.removeItem(atPath: path.string) }

func move(_ path: FilePath, to target: FilePath) throws {
    try FileManager.default.moveItem(atPath: path.string, toPath: target.string)
}

/// The same where a file is there, which it replaces.
func move(_ path: FilePath, over target: FilePath) throws {
    guard rename(path.string, target.string) == 0 else { throw Errno(rawValue: errno) }
}

func makeSymlink(_ path: FilePath, to target: FilePath) throws {
    try FileManager.default.createSymbolicLink(atPath: path.string, withDestinationPath: target.string)
}

/// A second name of a file.
func makeLink(_ path: FilePath, to file: FilePath) throws {
    try FileManager.default.linkItem(atPath: file.string, toPath: path.string)
}

/// A time that can be put back exactly.
let someTime = Date(timeIntervalSince1970: 1_700_000_000)

func setTime(_ path: FilePath, _ time: Date = someTime) throws {
    try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: path.string)
}

/// Edits a file in place as `exiftool -P` does: another content of the same length, and its time put back.
func edit(_ path: FilePath, _ text: String) throws {
    try overwrite(path, text)
    try setTime(path)
}

/// Writes into a file in place, under the very bytes of its name.
func overwrite(_ path: FilePath, _ text: String, _ options: FileDescriptor.OpenOptions = []) throws {
    let descriptor = try FileDescriptor.open(
        path, .writeOnly, options: options.union(.closeOnExec), permissions: .ownerReadWrite)
    try descriptor.closeAfter { _ = try descriptor.writeAll(Array(text.utf8)) }
}

/// Until what was dropped is older than a watch that begins now.
func outlast(_ path: FilePath) async throws {
    try await eventually("a millisecond has passed") {
        guard let changed = try FileLook.look(at: path).identity?.changed else { return false }
        return WallTime(nanoseconds: changed) < .now
    }
}

/// Whether there is a program for `sql`.
let hasSQLite = FileManager.default.isExecutableFile(atPath: "/usr/bin/sqlite3")

/// Changes a journal behind its owner's back.
func sql(_ journal: FilePath, _ text: String) throws {
    try runProgram("/usr/bin/sqlite3", ["-cmd", ".timeout 60000", journal.string, text])
}

/// Runs a program to its end, which must be a good one.
func runProgram(_ program: String, _ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw Unexpected(description: "\(program) \(arguments)") }
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

/// What a test did not reckon with.
struct Unexpected: Error, CustomStringConvertible { var description = "another outcome" }

/// Words that tasks share, in their order.
final class Words: Sendable {
    private let words = Mutex<[String]>([])
    var all: [String] { words.withLock(\.self) }
    func add(_ word: String) { words.withLock { $0.append(word) } }
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

/// Runs services beside `body`, and stops them in order when it returns.
func whileRunning(_ services: [any Service], _ body: () async throws -> Void) async throws {
    let group = ServiceGroup(quietly: services)
    try await withThrowingTaskGroup(of: Void.self) { tasks in
        tasks.addTask { try await group.run() }
        do {
            try await body()
        } catch {
            tasks.cancelAll()
            while (try? await tasks.next()) != nil {}
            throw error
        }
        await group.triggerGracefulShutdown()
        try await tasks.waitForAll()
    }
}
