internal import InletCore
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// The result of a write: how many lines were lost, and the fault; nil without one.
typealias LogWrite = (lost: Int, trouble: String?)

/// Writes whole lines, in the order they came. It may block: only the thread of a `LogWriter` calls it.
protocol LogOutput: Sendable {
    /// The reason to report when a write takes too long.
    var silence: String { get }
    func write(_ lines: [EventLine], _ style: LineStyle, at time: WallTime) -> LogWrite
    /// Looks the file up by its name again: it may have been moved away.
    func reopen()
}

extension LogOutput {
    func reopen() {}
}

/// The process's own output. Where systemd's journal reads it, each line starts with its priority.
final class StreamOutput: LogOutput {
    private let stream: StandardStream
    private let isJournal: Bool
    /// Whether the last line was cut off; and the day of the last line, which a terminal shows when it changes.
    private let state = Mutex<(isTorn: Bool, day: String?)>((false, nil))

    init(_ stream: StandardStream, environment: (String) -> String? = ProcessSetup.environment) {
        self.stream = stream
        isJournal = ProcessSetup.isJournal(stream.rawValue, environment: environment)
    }

    var silence: String {
        "\(stream) accepts no lines: its reader is stuck (a pipe, a container's log driver, a terminal after Ctrl-S)"
    }

    func write(_ lines: [EventLine], _ style: LineStyle, at time: WallTime) -> LogWrite {
        let text = lines.flatMap { line in
            (isJournal ? Array("<\(line.level.priority)>".utf8) : []) + line.text(style, at: time)
        }
        return state.withLock { state in
            let bytes = (state.isTorn ? [LogFile.newline] : []) + heading(style, time, &state.day) + text
            let (written, error) = stream.write(bytes)
            let kept = error == nil ? written : LogFile.kept(bytes, written, stream.takeBack)
            if kept > 0 { state.isTorn = bytes[kept - 1] != LogFile.newline }
            return (bytes[kept...].count { $0 == LogFile.newline }, error.map { "\(stream): \($0)" })
        }
    }
}

extension StreamOutput {
    /// `— 2026-11-22 —` above a terminal's first line and the first of each day.
    private func heading(_ style: LineStyle, _ time: WallTime, _ day: inout String?) -> [UInt8] {
        guard case .terminal(let hasColour) = style else { return [] }
        let today = time.day()
        defer { day = today }
        if day == today { return [] }
        let text = "— \(today) —"
        return Array("\(hasColour ? TextStyle.faint.paint(text) : text)\n".utf8)
    }
}

/// A log file.
final class FileOutput: LogOutput {
    private let path: FilePath
    private let file: Mutex<LogFile>

    init(_ path: FilePath, _ rotation: LogRotation) throws(SystemError) {
        self.path = path
        file = Mutex(try LogFile(path, rotation, now: .now))
    }

    var silence: String { "\(path.display): the disk accepts no lines, or does not answer" }

    func write(_ lines: [EventLine], _ style: LineStyle, at time: WallTime) -> LogWrite {
        let text = lines.flatMap { $0.text(style, at: time) }
        let now = ContinuousClock.now
        let (wasFailing, lost, error) = file.withLock { file in
            let wasFailing = file.isFailing
            let (lost, error) = file.write(text, at: now)
            return (wasFailing, lost, error)
        }
        // The file cannot report its own fault.
        if let error, !wasFailing {
            StandardStream.errors.offer(Array("inlet: log lines are lost: \(error)\n".utf8))
        }
        return (lost, error.map { "\($0)" })
    }

    func reopen() {
        let now = ContinuousClock.now
        file.withLock { $0.lookSoon(now) }
    }
}

/// systemd's journal, with one journal field per field of a line. Entries that it does not accept go to standard error.
final class JournalOutput: LogOutput {
    /// How long to wait before trying a journal again that accepts nothing.
    private static let pause = Duration.seconds(10)

    private let path: FilePath
    private let socket: JournalSocket?
    private let fallback = StreamOutput(.errors)
    /// Why lines go to standard error, nil while they do not; and the time of the next try.
    private let state = Mutex<(trouble: String?, nextTry: ContinuousClock.Instant?)>((nil, nil))

    init(_ path: FilePath) {
        self.path = path
        // Without it lines go to standard error.
        socket = try? JournalSocket(path)
    }

    var silence: String { "systemd's journal accepts no lines" }

    func write(_ lines: [EventLine], _ style: LineStyle, at time: WallTime) -> LogWrite {
        let now = ContinuousClock.now
        return state.withLock { state in
            if let next = state.nextTry, now < next { return elsewhere(lines[...], style, at: time, state.trouble) }
            state.nextTry = nil
            for (index, line) in lines.enumerated() {
                do throws(SystemError) {
                    guard let socket else { throw SystemError(call: "socket", path: path, code: .tooManyOpenFiles) }
                    try socket.send(line.journalMessage)
                } catch {
                    // Each further entry would block as long.
                    if error.code == .resourceTemporarilyUnavailable { state.nextTry = now.advanced(by: Self.pause) }
                    state.trouble = "the journal accepts no log lines; they go to standard error: \(error)"
                    return elsewhere(lines[index...], style, at: time, state.trouble)
                }
            }
            state.trouble = nil
            return (0, nil)
        }
    }

    private func elsewhere(
        _ lines: ArraySlice<EventLine>, _ style: LineStyle, at time: WallTime, _ trouble: String?
    ) -> LogWrite {
        (fallback.write(Array(lines), style, at: time).lost, trouble)
    }
}

/// The log file: reopened after somebody moved it away, set aside when it is full.
struct LogFile: ~Copyable {
    /// How often it checks whether the name still leads to this file.
    private static let lookInterval = Duration.seconds(1)
    /// How long to wait before rotating again after a rotation failed.
    private static let rotationPause = Duration.seconds(60)

    private let rotation: LogRotation
    private var file: AppendFile
    private var standing: AppendFile.Status
    private var nextLook: ContinuousClock.Instant
    private var nextRotation: ContinuousClock.Instant
    /// Whether the file ends in the middle of a line, after a full disk or a crash.
    private var isTorn: Bool
    /// Whether the last lines were not all written.
    private(set) var isFailing = false

    init(_ path: FilePath, _ rotation: LogRotation, now: ContinuousClock.Instant) throws(SystemError) {
        self.rotation = rotation
        let file = try AppendFile(path)
        standing = try file.status()
        isTorn = !file.endsWithLine()
        self.file = file
        nextLook = now.advanced(by: Self.lookInterval)
        nextRotation = now
    }

    /// Adds whole lines.
    ///
    /// - Returns: how many lines are missing in the file, and why.
    mutating func write(_ lines: [UInt8], at now: ContinuousClock.Instant) -> (lost: Int, error: SystemError?) {
        if now >= nextLook { look(at: now) }
        if standing.isRegular, now >= nextRotation, rotation.isDue(size: standing.size, adding: lines.count) {
            rotate(at: now)
        }
        let text = isTorn ? [Self.newline] + lines : lines
        let (written, error) = file.append(text)
        isFailing = error != nil
        let kept = error == nil ? written : Self.kept(text, written) { file.takeBack($0) }
        standing.size += Int64(kept)
        if kept > 0 { isTorn = text[kept - 1] != Self.newline }
        return (text[kept...].count { $0 == Self.newline }, error)
    }

    static let newline = UInt8(ascii: "\n")

    /// How many bytes of a short write stay. An incomplete last line is taken back where that is possible.
    static func kept(_ text: [UInt8], _ written: Int, _ takeBack: (Int) -> Bool) -> Int {
        let whole = (text[..<written].lastIndex(of: newline) ?? -1) + 1
        return whole < written && takeBack(written - whole) ? whole : written
    }

    /// Makes the next write check the file's name.
    mutating func lookSoon(_ now: ContinuousClock.Instant) { nextLook = now }

    /// Opens a new file when the name leads to another file now, or to none (logrotate(8)).
    private mutating func look(at now: ContinuousClock.Instant) {
        nextLook = now.advanced(by: Self.lookInterval)
        // If stat fails, reopening it finds out more.
        if let there = try? AppendFile.status(at: file.path), there.isSame(as: standing) {
            standing = there
        } else {
            reopen()
        }
    }

    private mutating func reopen() {
        do throws(SystemError) {
            let new = try AppendFile(file.path)
            standing = try new.status()
            isTorn = !new.endsWithLine()
            file = new
        } catch {
            // The old file stays in use: its lines are not lost.
        }
    }

    private mutating func rotate(at now: ContinuousClock.Instant) {
        // Of a symlink, the target is rotated.
        let path = file.path.resolved
        // A name whose status is unknown counts as free.
        let steps = rotation.steps { (try? AppendFile.status(at: LogRotation.path(path, $0))) != nil }
        do throws(SystemError) {
            for step in steps {
                switch step {
                case .rename(let old, let new):
                    try DurableFile.rename(LogRotation.path(path, old), over: LogRotation.path(path, new))
                    if old == 0 { reopen() }
                case .remove(let number): try DurableFile.remove(LogRotation.path(path, number))
                }
            }
        } catch {
            // Until then the log stays in its file.
            nextRotation = now.advanced(by: Self.rotationPause)
        }
    }
}

/// When a log file is set aside, and which name becomes which.
struct LogRotation: Sendable {
    /// A step of a rotation; 0 is the log itself, 1 the newest file that was set aside.
    enum Step: Equatable {
        case rename(from: Int, to: Int)
        case remove(Int)
    }

    /// Bytes; nil means never.
    var maxSize: Int64?
    /// How many files that were set aside are kept; from 1.
    var keep: Int

    /// Whether a log of `size` bytes is set aside before `count` more are added. An empty log never is.
    func isDue(size: Int64, adding count: Int) -> Bool {
        guard let maxSize else { return false }
        return size > 0 && size + Int64(count) > maxSize
    }

    /// Each rename frees the name that the next one takes, so a crash between two loses no file. It leaves a gap, and
    /// the next rotation moves only the files before the first gap. The oldest file is overwritten only when there is
    /// no gap. Files beyond `keep` are removed as far as their numbers have no gap.
    func steps(_ isThere: (Int) -> Bool) -> [Step] {
        var gap = 1
        while gap < keep, isThere(gap) { gap += 1 }
        var steps = (0..<gap).reversed().map { Step.rename(from: $0, to: $0 + 1) }
        var beyond = keep + 1
        while isThere(beyond), steps.count < 2000 {
            steps.append(.remove(beyond))
            beyond += 1
        }
        return steps
    }

    /// `PATH`, `PATH.1`, `PATH.2` …
    static func path(_ log: FilePath, _ number: Int) -> FilePath {
        number > 0 ? FilePath(bytes: log.bytes + Array(".\(number)".utf8)) : log
    }
}
