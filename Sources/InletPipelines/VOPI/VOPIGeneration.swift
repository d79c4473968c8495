/// Which of its two ways a server cancels jobs in. They differ where it hurts: `DELETE /jobs/:id` cancels a job on the one
/// and destroys it, with its files, on the other.
package enum VOPIGeneration: String, Sendable, Codable, CaseIterable {
    /// Before 2026-01-27: DELETE cancels; nothing deletes.
    case older
    /// `POST …/cancel` cancels, DELETE deletes.
    case newer
}
