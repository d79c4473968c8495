internal import InletCore
internal import SystemPackage

/// What was there before the root was watched, with `existing: adopt`.
extension SettledFiles {
    /// A file of which the journal knows nothing under its path: it was renamed, it is adopted, or it goes its way.
    ///
    /// - Parameters:
    ///   - ending: what its adoption came to; one that was renamed has not been asked about.
    ///   - hashed: the bytes read in this turn.
    /// - Returns: nil for one that goes its way.
    mutating func considerUnknown(
        _ arrival: Arrival, _ ending: Adoption.Ending?, _ hashed: inout Int64
    ) async -> Considered? {
        if admitter.deriver?.isUnderWay(arrival) == true {
            return .look(.waiting(for: .seconds(30), why: "waiting for its derived files"))
        }
        var ending = ending
        if !renames.origins(of: arrival.path).isEmpty {
            if let renamed = await considerRenamed(arrival) {
                hashed += arrival.identity.size
                return renamed
            }
            ending = await adopt([arrival])[arrival.path]
        }
        return switch ending {
        case .unanswered(let wait, let why): .look(.waiting(for: wait, why: why))
        case .later: .look(.later("waiting for what is known of it"))
        case .adopted, .known, .unmatched: .known
        case .send, nil: nil
        }
    }

    /// What became of those of `arrivals` that are old enough; nothing for the others.
    mutating func adopt(_ arrivals: [Arrival]) async -> [FilePath: Adoption.Ending] {
        guard adopter != nil else { return [:] }
        let old = arrivals.filter { adopter?.isOld($0.identity) == true }
        if old.isEmpty { return [:] }
        let endings = await adopter?.adopt(old) ?? [:]
        for arrival in old {
            switch endings[arrival.path] {
            case .adopted: adopted = (adopted.files + 1, adopted.bytes + arrival.identity.size)
            case .unmatched: noteNotAdopted(arrival.path)
            default: break
            }
        }
        return endings
    }

    /// How many were taken over since the last call, for one line in the log.
    mutating func takeAdopted() -> (files: Int, bytes: Int64)? {
        defer { adopted = (0, 0) }
        return adopted.files > 0 ? adopted : nil
    }

    /// Said once for each folder and extension.
    private mutating func noteNotAdopted(_ path: FilePath) {
        guard tally.count(path) else { return }
        log.emit(
            .fileIgnored(
                path: root.pushing(path),
                reason: "it was there before this folder was watched, and no route accepts it (existing: adopt)"))
    }
}
