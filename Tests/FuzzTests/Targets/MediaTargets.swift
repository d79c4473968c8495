import InletCore
import InletLinux
import SystemPackage

@testable import InletMedia
@testable import InletPipelines

extension FuzzTarget {
    /// Files that are looked into.
    static let media = [
        FuzzTarget("pictures", longest: 16_384) { bytes throws(Broken) in try date(Array(bytes)) },
        FuzzTarget("movies", longest: 16_384) { bytes throws(Broken) in try date(Array(bytes)) },
        FuzzTarget("mhl", longest: 8192) { bytes throws(Broken) in
            let text = Array(bytes)
            var history = ManifestHistory()
            let isList = history.add(generation: text, called: "0001_card_2026-11-21_000000Z.mhl")
            if isList { history.link(1, "0001_card_2026-11-21_000000Z.mhl", text) }
            try promise(history.files.count <= bytes.count, "more files than came")
            _ = history.add(chain: text)
            for link in history.links where !isList {
                try promise(!link.name.contains("/"), "a list of another folder: \(link.name)")
            }
            _ = MediaHashList.chain(history.links)
        },
    ]

    private static let now = WallTime(milliseconds: 1_795_219_200_000)

    private static func date(_ bytes: [UInt8]) throws(Broken) {
        let reader = BoundedBytes(size: Int64(bytes.count)) { offset, count throws(SystemError) in
            Array(bytes[Int(offset)..<min(bytes.count, Int(offset) + count)])
        }
        var found: CaptureDate?
        do throws(SystemError) {
            found = try CaptureDate.read(reader, at: now)
        } catch {
            throw Broken("an error that the bytes cannot cause: \(error)")
        }
        if let found {
            try promise(found.time.isPlausible(at: now), "a date that no camera wrote: \(found.time.display)")
        }
    }
}
