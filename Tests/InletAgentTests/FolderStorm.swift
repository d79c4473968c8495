import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage

/// Changes in a folder as people and programs make them, drawn by a seed: files that are written, replaced, renamed and deleted;
/// folders that are made at once, renamed, exchanged, and moved out and in again. Each file has a size of its own.
struct FolderStorm {
    private var random: SeededGenerator
    private let root: FilePath
    /// Beside the root, on its file system.
    private let outside: FilePath
    private var number = 0

    init(seed: UInt64, root: FilePath, outside: FilePath) {
        random = SeededGenerator(seed: seed)
        (self.root, self.outside) = (root, outside)
    }

    /// What is in the folder, by paths relative to it, but for what is never a user's.
    static func content(of root: FilePath) throws -> (folders: [FilePath], files: [FilePath: FileIdentity]) {
        var (folders, files): ([FilePath], [FilePath: FileIdentity]) = ([""], [:])
        for name in FileManager.default.enumerator(atPath: root.string)?.compactMap({ $0 as? String }).sorted() ?? [] {
            let path = FilePath(name)
            if path.components.first == ".inlet" { continue }
            switch try FileLook.look(at: root.pushing(path)) {
            case .directory: folders.append(path)
            case .regular(let identity, _, _): files[path] = identity
            default: break
            }
        }
        return (folders, files)
    }

    mutating func step() throws {
        let content = try Self.content(of: root)
        let files = content.files.keys.sorted { $0.string < $1.string }
        let folder = content.folders.randomElement(using: &random) ?? ""
        switch Int.random(in: 0..<12, using: &random) {
        case 0..<4: try write(folder.appending("f\(Int.random(in: 0..<8, using: &random))"))
        case 4: try write(folder.pushing(FilePath("x\(next())/y/z/f")))
        case 5:
            if let file = files.randomElement(using: &random) { try move(root.pushing(file), over: free(in: folder)) }
        case 6: try exchangeTwo(of: files)
        case 7: try moveFolder(of: content.folders, to: folder)
        case 8: try exchangeTwo(of: content.folders.filter { !$0.isEmpty })
        case 9: if let file = files.randomElement(using: &random) { try remove(root.pushing(file)) }
        case 10: if let two = two(of: files) { try move(root.pushing(two.0), over: root.pushing(two.1)) }
        default: try moveOutOrIn(content.folders, folder)
        }
    }

    private mutating func next() -> Int {
        number += 1
        return number
    }

    private mutating func free(in folder: FilePath) -> FilePath {
        root.pushing(folder).appending("n\(next())")
    }

    private mutating func write(_ path: FilePath) throws {
        let file = root.pushing(path)
        try FileManager.default.createDirectory(
            atPath: file.removingLastComponent().string, withIntermediateDirectories: true)
        try Data(repeating: 1, count: next()).write(to: URL(fileURLWithPath: file.string))
    }

    private mutating func two(of paths: [FilePath]) -> (FilePath, FilePath)? {
        guard let one = paths.randomElement(using: &random), let other = paths.randomElement(using: &random),
            !one.isWithin(other), !other.isWithin(one)
        else { return nil }
        return (one, other)
    }

    private mutating func exchangeTwo(of paths: [FilePath]) throws {
        guard let (one, other) = two(of: paths) else { return }
        if !exchange(root.pushing(one), root.pushing(other)) { throw Errno.badAddress }
    }

    private mutating func moveFolder(of folders: [FilePath], to target: FilePath) throws {
        guard let folder = folders.randomElement(using: &random), !folder.isEmpty, !target.isWithin(folder) else {
            return
        }
        try move(root.pushing(folder), over: free(in: target))
    }

    private mutating func moveOutOrIn(_ folders: [FilePath], _ target: FilePath) throws {
        let away = try names(in: outside)
        if let name = away.randomElement(using: &random), Bool.random(using: &random) {
            return try move(outside.appending(name), over: free(in: target))
        }
        guard let folder = folders.randomElement(using: &random), !folder.isEmpty else { return }
        try move(root.pushing(folder), over: outside.appending("o\(next())"))
    }
}
