internal import InletConfig
internal import InletCore
internal import InletLinux
internal import SystemPackage

/// The former texts of a configuration, beside it: `inlet.yaml.2026-11-27T15-05-01.123Z.old`. They hold the same secrets.
/// All calls block.
struct ConfigVersions: Sendable {
    /// No symlink.
    let file: FilePath

    private static let most = 10

    var folder: FilePath { file.removingLastComponent() }
    private var name: String { file.lastComponent?.string ?? "" }

    /// The names of texts other than the present one, the newest first.
    func names(except present: [UInt8]) -> [String] { names().filter { content($0) != present } }

    /// All that can be read, the newest first.
    var texts: [[UInt8]] { names().compactMap(content) }

    /// nil where no former text has this name.
    func text(of version: String) throws(SystemError) -> [UInt8]? {
        guard names().contains(version) else { return nil }
        return try DurableFile.read(folder.appending(version), limit: ConfigFile.maximumBytes)
    }

    private func content(_ name: String) -> [UInt8]? {
        DurableFile.readIfPossible(folder.appending(name), limit: ConfigFile.maximumBytes)
    }

    /// A person's own files have other names.
    private func names() -> [String] {
        var found: [String] = []
        do throws(SystemError) {
            var stream = try DirectoryStream(folder)
            while let entry = try stream.next() {
                if entry.kind == .regular, time(of: entry.name.string) != nil { found.append(entry.name.string) }
            }
        } catch {
            // Without permission to list there is nothing to go back to.
            return []
        }
        return found.sorted(by: >)
    }

    /// The time in the name of a former text; nil for other names.
    private func time(of text: String) -> String? {
        guard text.hasPrefix(name + ".") else { return nil }
        let match = text.dropFirst(name.count + 1).wholeMatch(of: /(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z)\.old/)
        return match.map { String($0.1) }
    }

    /// Gives the present file a second name, which it keeps when another text takes its place: mode and owner with it.
    /// Where a file system has no such names, a copy of `text` does.
    func keep(_ text: [UInt8], at now: WallTime = .now) throws(SystemError) -> FilePath {
        let path = folder.appending("\(name).\(nextTime(after: now)).old")
        do throws(SystemError) {
            try DurableFile.addName(path, to: file)
        } catch {
            // A file system without hard links; any other trouble meets the copy too.
            try DurableFile.create(text, at: path, mode: 0o600)
        }
        return path
    }

    /// Later than all that are there, also where the clock was set back.
    private func nextTime(after now: WallTime) -> String {
        let newest = names().first.flatMap { time(of: $0) }.flatMap { WallTime(rfc3339: Self.rfc3339($0)) }
        let next = newest.map { max(now, $0 + .milliseconds(1)) } ?? now
        return next.rfc3339.replacing(":", with: "-")
    }

    /// `2026-11-27T15-05-01.123Z` as it was before it became a part of a name.
    private static func rfc3339(_ text: String) -> String {
        String(text.prefix(11)) + text.dropFirst(11).replacing("-", with: ":")
    }

    /// Drops the oldest. None stays open to more people than the present text.
    func prune() {
        let all = names()
        for old in all.dropFirst(Self.most) { DurableFile.discard(folder.appending(old)) }
        for kept in all.prefix(Self.most) {
            // One that cannot be changed is as it was kept.
            try? FileOwner.narrow(folder.appending(kept), to: file)
        }
    }
}
