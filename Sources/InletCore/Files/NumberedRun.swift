/// The numbers that are missing from the files that a camera counted: `C0003` between `C0002.MP4` and `C0004.MP4`.
///
/// A run has one folder, one text before the number, and at least three digits. Only pictures and recordings count:
/// where a recording is missing, the thumbnail beside it does not stand for it.
package enum NumberedRun {
    /// A wider gap begins a new run: the counter was set, or another camera wrote the rest.
    package static let widestGap = 200
    private static let leastDigits = 3
    /// No counter is longer; a longer number is a date.
    private static let mostDigits = 6

    private struct Run: Hashable {
        var prefix: String
        var digits: Int
    }

    /// The missing names in folders: each with its folder, `CLIP/C0003`, or as a range, `CLIP/C0003 to C0005`.
    ///
    /// - Parameter paths: the paths of the files, with `/` between their folders.
    package static func gaps(inFolders paths: some Sequence<String>) -> [String] {
        var folders: [String: [String]] = [:]
        for path in paths {
            let end = path.lastIndex(of: "/")
            let folder = end.map { String(path[...$0]) } ?? ""
            folders[folder, default: []].append(end.map { String(path[path.index(after: $0)...]) } ?? path)
        }
        return folders.sorted { $0.key < $1.key }.flatMap { folder, names in gaps(names).map { folder + $0 } }
    }

    /// The same for the names in one folder.
    package static func gaps(_ names: some Sequence<String>) -> [String] {
        var runs: [Run: Set<Int>] = [:]
        // Some cameras count pictures and recordings together: IMG_0001, MVI_0002, IMG_0003.
        var taken: [Int: Set<Int>] = [:]
        for (run, number) in names.compactMap(parse) {
            runs[run, default: []].insert(number)
            taken[run.digits, default: []].insert(number)
        }
        return runs.sorted {
            $0.key.prefix < $1.key.prefix || $0.key.prefix == $1.key.prefix && $0.key.digits < $1.key.digits
        }
        .flatMap { run, numbers in
            let sorted = numbers.sorted()
            return zip(sorted, sorted.dropFirst()).flatMap { low, high -> [String] in
                guard high - low > 1, high - low - 1 <= widestGap else { return [] }
                return text(run, (low + 1..<high).filter { taken[run.digits]?.contains($0) != true })
            }
        }
    }

    private static func text(_ run: Run, _ missing: [Int]) -> [String] {
        var ranges: [ClosedRange<Int>] = []
        for number in missing {
            if let last = ranges.last, last.upperBound == number - 1 {
                ranges[ranges.count - 1] = last.lowerBound...number
            } else {
                ranges.append(number...number)
            }
        }
        return ranges.map { range in
            let ends = [range.lowerBound, range.upperBound].map { number in
                let digits = "\(number)"
                return run.prefix + String(repeating: "0", count: max(0, run.digits - digits.count)) + digits
            }
            return range.count == 1 ? ends[0] : "\(ends[0]) to \(ends[1])"
        }
    }

    private static func parse(_ name: String) -> (Run, Int)? {
        guard let dot = name.lastIndex(of: "."), !name.hasPrefix("."), isRecording(name[name.index(after: dot)...])
        else { return nil }
        let stem = name[..<dot]
        let digits = String(stem.reversed().prefix { $0.isASCII && $0.isNumber }.reversed())
        guard (leastDigits...mostDigits).contains(digits.count), let number = Int(digits) else { return nil }
        return (Run(prefix: withoutTime(stem.dropLast(digits.count)), digits: digits.count), number)
    }

    /// Blackmagic and RED put the date between the reel and the clip (`A001_11270512_C003.braw`): it is no part of the
    /// run.
    private static func withoutTime(_ prefix: Substring) -> String {
        prefix.split(separator: "_", omittingEmptySubsequences: false).map { part in
            (6...8).contains(part.count) && part.allSatisfy { $0.isASCII && $0.isNumber } ? "…" : String(part)
        }.joined(separator: "_")
    }

    private static func isRecording(_ ending: Substring) -> Bool {
        let type = MediaType.byExtension(String(ending))
        return rawEndings.contains(ending.lowercased()) || type == "application/mxf"
            || ["video/", "audio/", "image/"].contains { type.hasPrefix($0) }
    }

    /// Recordings and pictures without a registered type.
    private static let rawEndings: Set<String> = [
        "r3d", "braw", "ari", "arx", "crm", "nrw", "nev", "srw", "pef", "3fr", "iiq", "gpr", "insv", "360",
    ]

    /// Whether a file's name says that a camera or recorder wrote it: such a file is never empty.
    package static func isRecording(named name: String) -> Bool {
        name.lastIndex(of: ".").map { isRecording(name[name.index(after: $0)...]) } ?? false
    }
}
