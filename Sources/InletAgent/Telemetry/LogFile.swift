internal import InletCore
internal import InletLinux
internal import SystemPackage

/// The file that lines go to: followed when somebody moves it away, set aside when it is full.
struct LogFile: ~Copyable {
    /// How often the name is asked whether it still is our file.
    private static let lookInterval = Duration.seconds(1)
    /// After files could not be set aside, how long the log goes on as it is.
    private static let rotationPause = Duration.seconds(60)

    private let rotation: LogRotation
    private var file: AppendFile
    private var standing: AppendFile.Standing
    private var nextLook: ContinuousClock.Instant
    private var nextRotation: ContinuousClock.Instant
    /// Whether the file ends within a line: the disk was full, or a process died.
    private var isTorn: Bool

    init(_ path: FilePath, _ rotation: LogRotation, now: ContinuousClock.Instant) throws(SystemError) {
        self.rotation = rotation
        let file = try AppendFile(path)
        standing = try file.standing()
        isTorn = !file.endsWithLine()
        self.file = file
        nextLook = now.advanced(by: Self.lookInterval)
        nextRotation = now
    }

    /// Adds whole lines.
    ///
    /// - Returns: how many of them are not in the file, and why.
    mutating func write(_ lines: [UInt8], at now: ContinuousClock.Instant) -> (lost: Int, error: SystemError?) {
        if now >= nextLook { look(at: now) }
        if standing.isRegular, now >= nextRotation, rotation.isDue(size: standing.size, adding: lines.count) {
            rotate(at: now)
        }
        let text = isTorn ? [Self.newline] + lines : lines
        let (written, error) = file.append(text)
        let kept = error == nil ? written : Self.kept(text, written) { file.takeBack($0) }
        standing.size += Int64(kept)
        if kept > 0 { isTorn = text[kept - 1] != Self.newline }
        return (text[kept...].count { $0 == Self.newline }, error)
    }

    static let newline = UInt8(ascii: "\n")

    /// How much of `text` stays, of which so much was written: half a line is taken back, which nobody could read, if it can be.
    static func kept(_ text: [UInt8], _ written: Int, _ takeBack: (Int) -> Bool) -> Int {
        let whole = (text[..<written].lastIndex(of: newline) ?? -1) + 1
        return whole < written && takeBack(written - whole) ? whole : written
    }

    /// Makes the next write look who has the name.
    mutating func lookSoon(_ now: ContinuousClock.Instant) { nextLook = now }

    /// Goes on in a new file when the name is another file's now, or nobody's (logrotate(8)).
    private mutating func look(at now: ContinuousClock.Instant) {
        nextLook = now.advanced(by: Self.lookInterval)
        if let there = try? AppendFile.standing(at: file.path), there.isSame(as: standing) {
            standing = there
        } else {
            reopen()
        }
    }

    /// Where the new file cannot be opened, the old one goes on: its lines are not lost, only elsewhere.
    private mutating func reopen() {
        guard let new = try? AppendFile(file.path), let there = try? new.standing() else { return }
        isTorn = !new.endsWithLine()
        standing = there
        file = new
    }

    private mutating func rotate(at now: ContinuousClock.Instant) {
        // Behind a link it is the file that is full, not the link.
        let path = file.path.resolved
        let steps = rotation.steps { number in
            ((try? AppendFile.standing(at: LogRotation.path(path, number))) ?? nil) != nil
        }
        do throws(SystemError) {
            for step in steps {
                switch step {
                case .rename(let old, let new):
                    try AppendFile.move(LogRotation.path(path, old), over: LogRotation.path(path, new))
                    if old == 0 { reopen() }
                case .remove(let number): try AppendFile.remove(LogRotation.path(path, number))
                }
            }
        } catch {
            // It goes on in the file that it has, until then.
            nextRotation = now.advanced(by: Self.rotationPause)
        }
    }
}
