import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage

/// Camera cards for tests: file systems in memory that stay as they are, and that are mounted in `media` when they are put in.
/// Only the hardware is missing, and FAT.
final class CardReader: Sendable {
    let directory: TemporaryDirectory
    var media: FilePath { directory.path.appending("media") }

    /// Whether this machine lets us mount, and gives file systems in memory an ID.
    static let isAvailable: Bool = {
        guard getuid() == 0, let reader = try? CardReader(TemporaryDirectory()) else { return false }
        defer { reader.close() }
        guard let card = try? reader.makeCard("test"),
            let folder = try? VolumeFinder().identity(of: card), folder.fsid != nil
        else { return false }
        return (try? reader.insert("test", at: "slot")) != nil
    }()

    init(_ directory: TemporaryDirectory) throws {
        self.directory = directory
        try directory.makeDirectory("media")
        try directory.makeDirectory("cards")
    }

    /// An agent that watches `DCIM` of every card.
    func scene() throws -> Scene {
        var scene = try Scene(in: directory)
        var watch = WatchSettings(path: media.appending("*").appending("DCIM"), settle: .zero, rescan: nil)
        watch.pattern = try RootPattern(watch.path)
        scene.watch = [watch]
        return scene
    }

    /// A new card with a folder `DCIM`. - Returns: where it can be written to, mounted elsewhere or not.
    @discardableResult
    func makeCard(_ name: FilePath.Component) throws -> FilePath {
        let card = try directory.makeDirectory(FilePath("cards").appending(name))
        try run("/bin/mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", card.string])
        try directory.makeDirectory(FilePath("cards").appending(name).appending("DCIM"))
        return card
    }

    /// A camera writes a picture. It is there at once with its time: one that gets it later would be another file by then.
    func shoot(_ picture: FilePath, on card: FilePath.Component, _ content: String = "content") throws {
        let place = FilePath("cards").appending(card)
        let draft = try directory.write(Array(content.utf8), to: place.appending("draft"))
        // Cameras whose clock was never set take their first pictures at the same time.
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1_000_000_000)], ofItemAtPath: draft.string)
        let path = directory.path.pushing(place).appending("DCIM").pushing(picture)
        try FileManager.default.createDirectory(
            atPath: path.removingLastComponent().string, withIntermediateDirectories: true)
        try DurableFile.rename(draft, to: path)
    }

    func insert(_ card: FilePath.Component, at slot: FilePath.Component) throws {
        let point = try directory.makeDirectory(FilePath("media").appending(slot))
        let source = directory.path.appending("cards").appending(card)
        try run("/bin/mount", ["--bind", source.string, point.string])
    }

    func pull(_ slot: FilePath.Component) throws {
        try run("/bin/umount", ["-l", media.appending(slot).string])
        try FileManager.default.removeItem(atPath: media.appending(slot).string)
    }

    /// Takes everything out.
    func close() {
        for folder in ["media", "cards"] as [FilePath.Component] {
            let path = directory.path.appending(folder)
            for name in (try? names(in: path)) ?? [] { try? run("/bin/umount", ["-l", path.appending(name).string]) }
        }
    }

    /// Something is mounted over a folder.
    func cover(_ folder: FilePath) throws {
        try run("/bin/mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder.string])
    }

    func uncover(_ folder: FilePath) throws { try run("/bin/umount", ["-l", folder.string]) }

    private func run(_ program: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw NotMounted(what: "\(program) \(arguments)") }
    }

    private struct NotMounted: Error {
        let what: String
    }
}
