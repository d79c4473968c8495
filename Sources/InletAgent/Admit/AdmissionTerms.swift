internal import InletCore
internal import InletJournal
internal import InletPipelines
internal import Synchronization
internal import SystemPackage

extension DestinationRegistry {
    /// The state of the destinations now, for admissions.
    func terms() -> AdmissionTerms {
        AdmissionTerms(uptimes: uptimes(), destinations: entries.withLock { $0.mapValues(\.destination) })
    }
}

/// The state of the destinations at one moment: a burst of files is admitted by it, and asks them once.
struct AdmissionTerms: Sendable {
    /// The expiry clocks, in milliseconds.
    let uptimes: [String: Int64]
    fileprivate let destinations: [String: Destination]

    func lane(of size: Int64, to destination: String) -> Lane {
        size > destinations[destination]?.smallLimit ?? 0 ? .big : .small
    }

    /// Of `names`, the destinations that only register the file at `path` below its root, with the one that must have it
    /// first.
    ///
    /// - Parameter fields: the file's own, rendered.
    func storages(_ names: [String], path: FilePath, fields: [String: String]) -> [String: String] {
        var storages: [String: String] = [:]
        for name in names {
            if let storage = destinations[name]?.storage, storage.isNeeded(path, fields) {
                storages[name] = storage.destination
            }
        }
        return storages
    }
}
