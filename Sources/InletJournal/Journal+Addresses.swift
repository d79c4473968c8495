internal import GRDB
package import InletCore

/// A destination is its address, not its name: what was proved at one endpoint and bucket is not claimed for another.
extension Journal {
    /// Takes note of where destinations are from now on.
    ///
    /// - Parameter addresses: by the names of destinations (`Destination.address`).
    /// - Returns: the names of those that were elsewhere before.
    @discardableResult
    package func setAddresses(_ addresses: [String: String]) async throws(JournalError) -> [String] {
        try await commit { database in
            var moved: [String] = []
            for (name, address) in addresses.sorted(by: { $0.key < $1.key }) {
                let before =
                    try database.row(
                        "SELECT address FROM destination WHERE name = ?", .text(name)
                    ) { $0.text(0) } ?? nil
                if before == address { continue }
                if before != nil { moved.append(name) }
                try database.change(
                    """
                    INSERT INTO destination (name, address, first_address) VALUES (?1, ?2, ?2)
                    ON CONFLICT(name) DO UPDATE SET address = ?2, first_address = ifnull(first_address, ?2)
                    """, .text(name), .text(address))
            }
            return moved
        }
    }

    /// Whether `proof` is of where the destination is now.
    static func isHere(_ proof: Proof, _ destination: String, _ database: Database) throws -> Bool {
        let known = try database.row(
            "SELECT address, first_address FROM destination WHERE name = ? AND address IS NOT NULL", .text(destination)
        ) { (now: $0.text(0), first: $0.text(1)) }
        guard let known else { return true }
        return (proof.address ?? known.first) == known.now
    }

    /// Of the deliveries of `job`, those that are proved where their destinations are now.
    package func standing(of job: Job) async throws(JournalError) -> Set<Int64> {
        try await read { database in
            try job.deliveries.reduce(into: []) { here, row in
                guard let proof = row.proof, !proof.isDeleted else { return }
                if try Self.isHere(proof, row.destination, database) { here.insert(row.id) }
            }
        }
    }

    /// Sends deliveries of a file again that have arrived, under the keys that they have: elsewhere, or because a person wants it.
    ///
    /// - Parameter uptimes: as `retry` has them.
    /// - Returns: false where nothing is done: one of them has no key of its own, because the content was there.
    package func resend(
        _ deliveries: Set<Int64>, of file: Int64, uptimes: [String: Int64], at now: WallTime
    ) async throws(JournalError) -> Bool {
        try await reviveAhead { try [file, Self.restOfBatch(of: file, $0)].compactMap(\.self) }
        return try await commit { database in
            try Self.revive(file, database)
            let rows = try Self.job(Self.file(file, database), database).deliveries.filter {
                deliveries.contains($0.id)
            }
            guard !rows.isEmpty, rows.allSatisfy({ $0.state == .delivered && $0.key != nil && $0.proof?.sameAs == nil })
            else { return false }
            for row in rows {
                try Self.forgetContent(of: row.id, database)
                // `retry` takes what has ended without a proof.
                try database.change(
                    "UPDATE delivery SET state = 'cancelled', proof = NULL WHERE id = ?", .integer(row.id))
            }
            return try Self.retry(file, uptimes, [:], now, database)
        }
    }
}
