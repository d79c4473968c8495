import Foundation
import InletLinux
import Synchronization
package import SystemPackage

/// Why a file system that a test wants is not there.
private struct NotMounted: Error, CustomStringConvertible {
    let description: String
}

/// A file system that a test mounts, with the machine's own tools.
package final class TestMount: Sendable {
    package let path: FilePath
    /// Of the process that answers for it; nil where the kernel does.
    private let server: Int32?

    /// Whether this process may mount one.
    package static let isAllowed = works { try TestMount("tmpfs", at: $0.makeDirectory("point")) }
    /// Whether overlays can be mounted above the tests' folders, too: not where those are on an overlay themselves.
    package static let hasOverlays = works { try TestMount(layers: $0, at: $0.makeDirectory("point")) }
    /// Whether bindfs (FUSE) can mount a folder at another place: with the package, `/dev/fuse` and the right to it.
    package static let hasBindfs = works {
        try TestMount(bindfs: $0.makeDirectory("other"), at: $0.makeDirectory("point"))
    }

    /// - Parameter path: a folder that is there.
    package init(_ type: String, at path: FilePath, options: String = "noatime") throws {
        self.path = path
        server = nil
        try Self.run("mount", ["-t", type, "-o", options, type, path.string])
    }

    /// `folder` with all in it, at another place too.
    package init(folder: FilePath, at path: FilePath) throws {
        self.path = path
        server = nil
        try Self.run("mount", ["--bind", folder.string, path.string])
    }

    /// What is done in `folder` behind this mount raises no events in it.
    package init(bindfs folder: FilePath, at path: FilePath) throws {
        self.path = path
        // FUSE 2 mounts over a folder with something in it only when told so, which FUSE 3 does not understand.
        do {
            server = try Self.serve(folder, at: path, options: ["-o", "nonempty"])
        } catch {
            do {
                server = try Self.serve(folder, at: path, options: [])
            } catch let second {
                throw NotMounted(description: "\(error); \(second)")
            }
        }
    }

    private static func serve(_ folder: FilePath, at path: FilePath, options: [String]) throws -> Int32 {
        // In the foreground: a daemon keeps what Foundation watches for the end of a process, and that end never comes.
        let process = process("bindfs", options + ["-f", folder.string, path.string])
        let errors = try TemporaryDirectory()
        let file = try errors.write([], to: "errors")
        process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: file.string))
        try process.run()
        Leash.hold(process.processIdentifier)
        var looks = 0
        while looks < mostLooks, process.isRunning {
            if isMounted(path) { return process.processIdentifier }
            usleep(betweenLooks)
            // Beside one that answers nobody others may not come about.
            if frozen.withLock({ $0.isEmpty }) { looks += 1 }
        }
        func text(_ path: String) -> String {
            String(decoding: (try? Data(contentsOf: URL(fileURLWithPath: path))) ?? Data(), as: UTF8.self)
        }
        // What it waits for in the kernel, if it still runs: nothing else tells it from one that was never asked.
        let place = text("/proc/\(process.processIdentifier)/stack")
        process.terminate()
        throw NotMounted(description: "no bindfs at \(path) after \(looks) looks: \(text(file.string)) \(place)")
    }

    /// From now on no call to it returns: what a server does that is away.
    package func freeze() {
        guard let server else { return }
        Self.frozen.withLock { _ = $0.insert(server) }
        kill(server, SIGSTOP)
    }

    /// All calls are answered.
    package func thaw() {
        guard let server else { return }
        kill(server, SIGCONT)
        Self.frozen.withLock { _ = $0.remove(server) }
    }

    /// Its server has died: every call fails from now on.
    package func end() {
        guard let server else { return }
        kill(server, SIGKILL)
    }

    private static let frozen = Mutex<Set<Int32>>([])

    private static let mostLooks = 6000
    /// In microseconds.
    private static let betweenLooks: UInt32 = 10_000

    private static func isMounted(_ path: FilePath) -> Bool {
        // As bytes: other tests' mounts may have names that are no UTF-8. Foundation reads no more than a page of such a file.
        let mounts = try? DurableFile.read("/proc/self/mountinfo", limit: 8 << 20)
        return mounts.map { Data($0).range(of: Data(" \(path) ".utf8)) != nil } ?? false
    }

    /// An overlay of the folders `upper` and `lower` of `layers` without one to write to: all changes are made behind it.
    package convenience init(layers: TemporaryDirectory, at path: FilePath) throws {
        let (upper, lower) = (try layers.makeDirectory("upper"), try layers.makeDirectory("lower"))
        try self.init("overlay", at: path, options: "lowerdir=\(upper):\(lower)")
    }

    deinit {
        thaw()
        unmount()
    }

    /// Doing it again does no harm.
    package func unmount() { try? Self.run("umount", ["-l", path.string]) }

    private static func works(_ mount: (TemporaryDirectory) throws -> TestMount) -> Bool {
        guard let folder = try? TemporaryDirectory(), let mounted = try? mount(folder) else { return false }
        mounted.unmount()
        return true
    }

    private static func run(_ tool: String, _ arguments: [String]) throws {
        let process = process(tool, arguments)
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw NotMounted(description: "\(tool) \(arguments.joined(separator: " ")): \(process.terminationStatus)")
        }
    }

    private static func process(_ tool: String, _ arguments: [String]) -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [tool] + arguments
        (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
        return process
    }
}
