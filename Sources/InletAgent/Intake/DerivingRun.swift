internal import Foundation
internal import InletCore
internal import InletLinux
internal import SystemPackage

/// One run of a program that makes a file of an original.
///
/// The program sees the original under a plain name in a folder of its own, so that no file name can be an option or a
/// pattern to it. It gives way to others, and its time and what it writes are bounded.
struct DerivingRun: Sendable {
    struct Failure: Error, CustomStringConvertible {
        var description: String
    }

    let rule: DeriveRule
    let source: RootedPath
    /// The original's, when it was found complete.
    let identity: FileIdentity
    /// Where the file goes that is made.
    let folder: FilePath

    private static let niceness: Int32 = 10

    /// Of the folders, one for each run, in which programs write.
    static let workPrefix = ".work"

    private static func number() -> String { String(UInt64.random(in: .min ... .max), radix: 36) }

    /// - Returns: the file, in `folder` and on the disk.
    func run(on pool: BlockingPool) async throws -> Arrival {
        guard let word = rule.command.first, let program = ProgramSearch.find(word) else {
            throw Failure(description: "there is no program '\(rule.command.first ?? "")'")
        }
        // A program that outlived a process of ours may still write: not where this one does.
        let work = folder.appending(Self.workPrefix + Self.number())
        try DurableFile.makeDirectories(work, mode: 0o700, asFolderOwner: true)
        // What stays is removed at the next start.
        defer { try? FileManager.default.removeItem(atPath: work.string) }
        let (input, output) = (work.appending("in" + ending), work.appending("out" + rule.suffix))
        // The program follows the path by itself: it is not begun where that leads elsewhere.
        try requireSource()
        try DurableFile.makeLink(input, to: source.whole)
        let arguments = [program.string] + rule.arguments(in: input.string, out: output.string).dropFirst()
        var child = ChildProcess(arguments, environment: environment(work), timeout: rule.timeout)
        (child.niceness, child.largestFile) = (Self.niceness, rule.maxSize)
        (child.yieldsMemory, child.leavesNobody) = (true, true)
        let outcome = try await child.run(on: pool)
        if let reason = Self.reason(outcome) { throw Failure(description: reason) }
        return try take(output)
    }

    /// Of the original's name only a plain extension: programs go by it.
    private var ending: String {
        let ending = FileName(source.path).plainExtension
        let isPlain = ending.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
        let isFit = isPlain && !ending.isEmpty && ending.utf8.count <= 16
        return isFit ? "." + ending : ""
    }

    private func environment(_ work: FilePath) -> [(name: String, value: [UInt8])] {
        [
            ("PATH", Array(ProgramSearch.path.utf8)), ("HOME", work.bytes), ("TMPDIR", work.bytes),
            ("LANG", Array("C.UTF-8".utf8)),
            // libvips (8.13 and later) opens nothing with the loaders that it does not trust: SVG, PDF, ImageMagick's.
            ("VIPS_BLOCK_UNTRUSTED", Array("1".utf8)),
        ]
    }

    private func requireSource() throws {
        guard let now = try FileLook.look(at: source).identity, now == identity else {
            throw Failure(description: "the file changed while it was read")
        }
    }

    private func take(_ output: FilePath) throws -> Arrival {
        try requireSource()
        guard let size = try FileLook.look(at: output).identity?.size, size > 0 else {
            throw Failure(description: "the program made no file")
        }
        guard size <= rule.maxSize else {
            throw Failure(description: "what it made has \(ByteText.format(size)), more than max_size")
        }
        // A name that no other one had or will have: the journal knows files by their paths.
        let name = FilePath("\(WallTime.now.milliseconds)-\(Self.number())\(rule.suffix)")
        try DurableFile.place(output, at: folder.pushing(name))
        guard let made = try FileLook.look(at: folder.pushing(name)).identity else {
            throw Failure(description: "the file that was made is gone")
        }
        return Arrival(root: folder, path: name, identity: made)
    }

    /// Why it made nothing; nil when it ended well.
    static func reason(_ ended: ChildProcess.Outcome) -> String? {
        let said = DisplayText.escape(ended.errors.suffix(300))
        let tail = said.isEmpty ? "" : ": \(said)"
        return switch ended.end {
        case .exited(0): nil
        case .exited(let code): "the program ended with \(code)\(tail)"
        case .signalled(let signal): "the program was ended by signal \(signal)\(tail)"
        case .timedOut: "the program took too long and was ended\(tail)"
        case .stuck: "the program took too long and could not be ended\(tail)"
        case .cancelled: "stopped"
        }
    }
}
