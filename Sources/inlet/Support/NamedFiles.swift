import ArgumentParser
import SystemPackage

/// Files that a command line names, as the bytes that they are there.
///
/// A shell makes tens of thousands of names of one `*`, for which the parser takes time and memory by the square of their
/// number: it sees one word for each row of them, which says where they are.
struct NamedFiles: ExpressibleByArgument {
    /// Places in the process's arguments, or what was read from elsewhere.
    private enum Place {
        case row(Range<Int>)
        case one(FilePath)
    }

    private let place: Place

    init(argument: String) {
        place = Self.row(argument).map { .row($0) } ?? .one(FilePath(argument))
    }

    /// How many they are.
    var count: Int { if case .row(let row) = place { row.count } else { 1 } }

    /// Some of them, by their places among them, as they were named.
    func paths(_ wanted: Range<Int>) -> [FilePath] {
        switch place {
        case .row(let row):
            wanted.clamped(to: 0..<row.count).compactMap { Self.argument(row.lowerBound + $0) }
        case .one(let path): wanted.contains(0) ? [path] : []
        }
    }

    // MARK: - The command line

    /// Those whose arguments are files.
    private static let commands: Set = ["send", "route"]

    /// The arguments of this process as the parser is to see them; nil = as they are.
    static func commandLine() -> [String]? {
        let count = Int(CommandLine.argc)
        guard count > 2, let command = argument(1)?.string, commands.contains(command) else { return nil }
        return [command] + folded(2..<count) { CommandLine.unsafeArgv[$0].map { String(cString: $0) } ?? "" }
    }

    /// The words at `places`, with one for each row of names. A name is what does not begin with `-`, nor follows a word
    /// that does and may want a value; after `--` everything is.
    static func folded(_ places: Range<Int>, _ word: (Int) -> String) -> [String] {
        var result: [String] = []
        var row: Range<Int>?
        var (allAreNames, mayBeValue) = (false, false)
        func endRow() {
            if let row { result.append(mark + "\(row.lowerBound) \(row.upperBound)") }
            row = nil
        }
        for place in places {
            let text = word(place)
            let isOption = !allAreNames && text.hasPrefix("-")
            if isOption || mayBeValue {
                endRow()
                result.append(text)
                allAreNames = allAreNames || (isOption && text == "--")
                mayBeValue = isOption && text != "--" && !text.contains("=")
            } else {
                row = (row?.lowerBound ?? place)..<(place + 1)
            }
        }
        endRow()
        return result
    }

    /// No argument has a zero byte in it.
    private static let mark = "\0"

    private static func row(_ word: String) -> Range<Int>? {
        guard word.hasPrefix(mark) else { return nil }
        let ends = word.dropFirst(mark.count).split(separator: " ").compactMap { Int($0) }
        return ends.count == 2 && ends[0] <= ends[1] ? ends[0]..<ends[1] : nil
    }

    private static func argument(_ place: Int) -> FilePath? {
        guard place < CommandLine.argc else { return nil }
        return CommandLine.unsafeArgv[place].map { FilePath(platformString: $0) }
    }
}

/// Reads the names of a command line some at a time: there may be more of them than should be in memory as paths.
struct NameReader {
    private var left: ArraySlice<NamedFiles>
    private var read = 0
    private let folder: FilePath
    private let takes: (FilePath) -> Bool

    /// - Parameters:
    ///   - folder: where names begin that do not say it.
    ///   - takes: which of them are meant.
    init(_ files: [NamedFiles], from folder: FilePath, where takes: @escaping (FilePath) -> Bool = { _ in true }) {
        left = files[...]
        self.folder = folder
        self.takes = takes
    }

    /// The next `most` names, or as many as there are.
    mutating func next(_ most: Int) -> [FilePath] {
        var found: [FilePath] = []
        while let files = left.first, found.count < most {
            let part = files.paths(read..<(read + most - found.count))
            found += part.map { folder.pushing($0).lexicallyNormalized() }.filter(takes)
            read += part.count
            if read >= files.count { (left, read) = (left.dropFirst(), 0) }
        }
        return found
    }
}
