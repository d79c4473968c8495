import Foundation
import InletTestSupport
import Synchronization
import SystemPackage

/// The built `inlet`, run as a user would: a process with its own environment, whose output goes to files. It is killed
/// when the last reference goes, or the process of the tests.
final class InletProcess: Sendable {
    enum Ending: Sendable, Equatable {
        case code(Int32)
        case signal(Int32)
    }

    /// What went wrong, with the end of what the process wrote.
    struct Unexpected: Error, CustomStringConvertible {
        let description: String
    }

    private let process: Process
    private let outputFile: FilePath
    private let errorFile: FilePath
    private let what: String
    private let watches: [CInt]
    private let seen = Mutex(SeenLog())

    /// What has been read of the log.
    private struct SeenLog {
        var lines: [LogLine] = []
        var bytes: UInt64 = 0
    }

    /// Starts `inlet` with `arguments`.
    ///
    /// - Parameters:
    ///   - folder: where its output is kept; also its HOME and its working directory.
    ///   - launcher: a program and arguments that run it, for example `setpriv …`.
    ///   - terminal: what it reads from and writes to, instead of nothing and a file.
    init(
        _ arguments: [String], in folder: FilePath, environment: [String: String] = [:], launcher: [String] = [],
        terminal: PseudoTerminal? = nil
    ) throws {
        let id = String(UInt32.random(in: .min ... .max), radix: 36)
        outputFile = folder.appending("\(id).out")
        errorFile = AgentLogs.file() ?? folder.appending("\(id).err")
        what = "inlet " + arguments.joined(separator: " ").prefix(200)
        let command = launcher + [try BuiltBinary.path().string] + arguments
        process = Process()
        process.executableURL = URL(fileURLWithPath: command[0])
        process.arguments = Array(command.dropFirst())
        process.currentDirectoryURL = URL(fileURLWithPath: folder.string)
        process.environment = [
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": folder.string, "TZ": "UTC",
            "XDG_STATE_HOME": folder.appending("xdg").string,
            // A second, and from then on every second: tests of the whole agent do not wait for minutes.
            "INLET_PROBE_PACE": "1000:1000",
        ].merging(environment) { $1 }
        let screen = try terminal?.open()
        let (output, errors) = (try Self.create(outputFile), try Self.create(errorFile))
        // It has its own by then. Foundation keeps what it started for good, and reads beside its table of open files where
        // those are a thousand and more (`Process.run`).
        defer { for file in [output, errors] { try? file.close() } }
        process.standardInput = screen ?? FileHandle.nullDevice
        process.standardOutput = screen ?? output
        process.standardError = errors
        process.terminationHandler = { _ in Happening.ring() }
        watches = [outputFile, errorFile].map { FileNews.follow($0) }
        try process.run()
        Leash.hold(process.processIdentifier)
    }

    private static func create(_ path: FilePath) throws -> FileHandle {
        try Data().write(to: URL(fileURLWithPath: path.string))
        return try FileHandle(forWritingTo: URL(fileURLWithPath: path.string))
    }

    deinit {
        for watch in watches { FileNews.forget(watch) }
        guard process.isRunning else { return }
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    var id: Int32 { process.processIdentifier }
    var output: String { Self.text(outputFile) }
    var errors: String { Self.text(errorFile) }
    var isRunning: Bool { process.isRunning }

    /// The processes that it started itself and that still run.
    var children: [Int32] { get throws { try Self.children(of: id) } }

    /// Of all its threads: a child is that of the thread which started it, and comes to another one when that ends.
    static func children(of process: Int32) throws -> [Int32] {
        let threads = "/proc/\(process)/task"
        return try FileManager.default.contentsOfDirectory(atPath: threads).flatMap { thread in
            // One may have ended meanwhile.
            let said = try? String(contentsOfFile: "\(threads)/\(thread)/children", encoding: .utf8)
            return (said ?? "").split(separator: " ").compactMap { Int32($0) }
        }
    }

    private static func text(_ path: FilePath) -> String {
        (try? Data(contentsOf: URL(fileURLWithPath: path.string))).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// The log so far; lines that are no JSON objects are left out. Each line is read once.
    var log: [LogLine] {
        seen.withLock { seen in
            guard let file = FileHandle(forReadingAtPath: errorFile.string),
                (try? file.seek(toOffset: seen.bytes)) != nil,
                let new = try? file.readToEnd(), let end = new.lastIndex(of: UInt8(ascii: "\n"))
            else { return seen.lines }
            seen.bytes += UInt64(end + 1 - new.startIndex)
            let lines = String(decoding: new[...end], as: UTF8.self).split(separator: "\n")
            seen.lines += lines.filter { $0.hasPrefix("{") }.compactMap { try? LogLine($0) }
            return seen.lines
        }
    }

    /// Log lines of `event` that meet `condition`.
    func lines(_ event: String, where condition: (LogLine) -> Bool = { _ in true }) -> [LogLine] {
        log.filter { $0.event == event && condition($0) }
    }

    /// Waits for the `number`th line of `event` that meets `condition`; fails at once when the process ends before.
    @discardableResult
    func line(
        _ event: String, number: Int = 1, within bound: Duration = .seconds(120),
        where condition: (LogLine) -> Bool = { _ in true }
    ) async throws -> LogLine {
        var found: LogLine?
        try await wait("line \(number) of \(event)", within: bound) {
            let wasRunning = isRunning
            let lines = lines(event, where: condition)
            found = lines.count >= number ? lines[number - 1] : nil
            if found == nil, !wasRunning { throw unexpected("ended without line \(number) of \(event)") }
            return found != nil
        }
        guard let found else { throw unexpected("has no line \(number) of \(event)") }
        return found
    }

    /// Waits until `condition` holds, and says what the process wrote when it does not in time.
    func wait(_ what: String, within bound: Duration = .seconds(120), _ condition: () async throws -> Bool) async throws
    {
        do {
            try await eventually(what, within: bound, condition)
        } catch let error as NotInTime {
            throw unexpected("\(error)")
        }
    }

    func signal(_ number: Int32) { Foundation.kill(process.processIdentifier, number) }

    /// Whether a signal has stopped it, from `/proc/PID/stat`.
    var isStopped: Bool {
        let stat = Self.text(FilePath("/proc/\(id)/stat"))
        return stat.drop { $0 != ")" }.hasPrefix(") T")
    }

    /// Waits for its end.
    func ending(within bound: Duration = .seconds(120)) async throws -> Ending {
        try await wait("the end of \(what)", within: bound) { !process.isRunning }
        return process.terminationReason == .exit
            ? .code(process.terminationStatus) : .signal(process.terminationStatus)
    }

    /// SIGTERM, and the end that it brings.
    @discardableResult
    func stop() async throws -> Ending {
        signal(SIGTERM)
        return try await ending()
    }

    /// SIGKILL, as a power cut would.
    func kill() async throws {
        signal(SIGKILL)
        _ = try await ending()
    }

    func unexpected(_ text: String) -> Unexpected {
        let said = AgentLogs.areKept ? "" : errors.suffix(4000)
        return Unexpected(description: "\(what): \(text)\n\(output.suffix(1000))\n\(said)")
    }
}

/// Where the build put the binary: beside the test bundle, whatever the build folder is called. No other build's is taken.
enum BuiltBinary {
    static func path() throws -> FilePath {
        let named = ProcessInfo.processInfo.environment["INLET_BINARY"].map { FilePath($0) }
        let bundles =
            ([try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")].compactMap(\.self)
            + CommandLine.arguments).filter { $0.contains("/") }
        let beside = bundles.map { FilePath($0).removingLastComponent().appending("inlet") }
        let candidates = [named].compactMap(\.self) + beside
        guard let found = candidates.first(where: { FileManager.default.isExecutableFile(atPath: $0.string) }) else {
            throw InletProcess.Unexpected(description: "no inlet binary in \(candidates.map(\.string))")
        }
        return found
    }
}

/// The sources that these tests were built from.
enum Repository {
    static let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
}

/// One line of the log: a JSON object whose fields are text, integers, flags or lists of text.
struct LogLine: Sendable, CustomStringConvertible {
    enum Field: Sendable, Equatable, Decodable {
        case text(String)
        case number(Int64)
        case flag(Bool)
        case list([String])

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            // Most are: what is tried in vain costs an error each time.
            if let text = try? value.decode(String.self) {
                self = .text(text)
            } else if let number = try? value.decode(Int64.self) {
                self = .number(number)
            } else if let flag = try? value.decode(Bool.self) {
                self = .flag(flag)
            } else {
                self = .list(try value.decode([String].self))
            }
        }
    }

    let description: String
    let fields: [String: Field]
    let event: String

    init(_ line: Substring) throws {
        description = String(line)
        fields = try JSONDecoder().decode([String: Field].self, from: Data(line.utf8))
        event = if case .text(let event)? = fields["event"] { event } else { "" }
    }

    /// A field's text; nil where it is missing or no text.
    subscript(name: String) -> String? {
        if case .text(let text)? = fields[name] { text } else { nil }
    }

    func number(_ name: String) -> Int64? {
        if case .number(let number)? = fields[name] { number } else { nil }
    }

    func flag(_ name: String) -> Bool? {
        if case .flag(let flag)? = fields[name] { flag } else { nil }
    }

    /// Whether the field `path` ends with `name`.
    func isAbout(_ name: String) -> Bool { self["path"]?.hasSuffix("/" + name) ?? false }
}

/// What a program has drawn on a terminal so far.
final class DrawnText {
    let terminal: PseudoTerminal
    private(set) var all = ""

    init(columns: Int, rows: Int) throws { terminal = try PseudoTerminal(columns: columns, rows: rows) }

    /// Waits until `text` has been drawn; what was drawn before is left out the next time.
    func wait(_ text: String, _ process: InletProcess) async throws {
        try await process.wait("'\(text)' is drawn") {
            all += terminal.drawn()
            return all.contains(text)
        }
    }

    func forget() {
        _ = terminal.drawn()
        all = ""
    }

    /// The lines of the last picture that was drawn whole; what colours are written of it is left in.
    var picture: [Substring] {
        let frames = all.components(separatedBy: "\u{1B}[H")
        return frames.count < 3 ? [] : Substring(frames[frames.count - 2]).split(separator: "\r\n")
    }
}

/// What other programs do to files.
enum Tool {
    static func run(_ program: String, _ arguments: String...) throws {
        // `waitUntilExit` may miss the end.
        let end = DispatchSemaphore(value: 0)
        let process = try Process.run(URL(fileURLWithPath: program), arguments: arguments) { _ in end.signal() }
        end.wait()
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
