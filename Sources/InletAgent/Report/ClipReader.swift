internal import InletCore
package import InletJournal
internal import InletLinux
package import InletMedia
package import SystemPackage

/// The findings in a recording's headers, for a report.
package struct ClipReading: Sendable {
    /// Why it may not open.
    package var fault: String?
    package var facts = ClipFacts()
    /// Whether neither its source nor a copy in a folder could be read.
    package var isUnread = false

    package init(fault: String? = nil, facts: ClipFacts = ClipFacts(), isUnread: Bool = false) {
        (self.fault, self.facts, self.isUnread) = (fault, facts, isUnread)
    }
}

/// Reads the headers of recordings and pictures: of a copy in a destination's folder, else of the source where that is
/// still the same file.
package enum ClipReader {
    /// For all files of a report; a slow disk or server must not hold up the answer for longer.
    private static let patience = Duration.seconds(40)
    /// FAT keeps times to two seconds.
    private static let coarsest: Int64 = 2_000_000_000
    private static let pool = BlockingPool(name: "report", threads: 1)

    /// By the number of the file. Files that are no recordings are left out.
    package static func read(_ jobs: [Job]) async -> [Int64: ClipReading] {
        let end = ContinuousClock.now.advanced(by: patience)
        var readings: [Int64: ClipReading] = [:]
        for job in jobs where NumberedRun.isRecording(named: job.file.path.display) {
            if ContinuousClock.now > end || Task.isCancelled {
                readings[job.file.id] = ClipReading(isUnread: true)
            } else {
                readings[job.file.id] = await pool.run { read(job) }
            }
        }
        return readings
    }

    /// The warnings about a card before it is formatted: recordings that do not open, and missing numbers, each with its
    /// path. Recordings that cannot be read now are left out. Blocks.
    ///
    /// - Parameters:
    ///   - files: with their paths below `mount`.
    ///   - isUnwanted: whether to stop, because somebody wants the card.
    package static func suspects(
        on mount: FilePath, _ files: [(path: FilePath, size: Int64)], unless isUnwanted: () -> Bool
    ) -> [String] {
        let end = ContinuousClock.now.advanced(by: patience)
        var faults: [String] = []
        for (path, size) in files where NumberedRun.isRecording(named: path.display) {
            if ContinuousClock.now > end || isUnwanted() { break }
            if size == 0 { faults.append("\(path.display): \(ClipCheck.empty)") }
            guard size > 0, ClipCheck.reads(named: path.display) else { continue }
            do {
                let fault = try ClipCheck.fault(at: RootedPath(mount, path))
                if let fault { faults.append("\(path.display): \(fault)") }
            } catch {
                // An unreadable file has its own line in the card's list.
                continue
            }
        }
        return faults
            + NumberedRun.gaps(inFolders: files.map(\.path.display)).map { "\($0) is missing from its run of numbers" }
    }

    private static func read(_ job: Job) -> ClipReading {
        for place in places(of: job) {
            do {
                let source = try SourceFile(opening: place)
                let isCopy = place.root.isEmpty
                // At the source's path there may be another card's file by now.
                guard
                    isCopy
                        ? source.opened.size == job.file.identity.size
                        : source.opened.isKnown(as: job.file.identity, tolerance: coarsest)
                else { continue }
                let fault = try ClipCheck.fault(of: source)
                return ClipReading(fault: fault, facts: try ClipFacts.read(from: source))
            } catch {
                // The next place may be readable.
                continue
            }
        }
        // Nothing needs to be read to know this.
        return job.file.identity.size == 0 ? ClipReading(fault: ClipCheck.empty) : ClipReading(isUnread: true)
    }

    /// The copies in folders, whose address is their path, then the source.
    private static func places(of job: Job) -> [RootedPath] {
        let copies = job.deliveries.compactMap { delivery -> RootedPath? in
            guard delivery.state == .delivered, let url = delivery.proof?.url, url.hasPrefix("/"),
                // An escaped path is another one.
                !url.contains("\\")
            else { return nil }
            return RootedPath("", FilePath(url))
        }
        return copies + [RootedPath(job.file.root, job.file.path)]
    }
}
