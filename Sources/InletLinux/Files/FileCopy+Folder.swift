import InletCore
package import SystemPackage

extension FileCopy {
    /// The same copy in an open folder. - Returns: the temporary file's name there.
    package static func copy(
        _ source: SourceFile, toTemporaryIn folder: Folder, name: FilePath.Component,
        as draft: FilePath.Component? = nil, isCancelled: () -> Bool, progress: (Int64) -> Void
    ) throws(FileCopyError) -> FilePath.Component {
        let result = folder.apart { path -> Result<FilePath, FileCopyError> in
            do throws(FileCopyError) {
                return .success(
                    try copy(
                        source, toTemporaryIn: path, name: name, as: draft, isCancelled: isCancelled, progress: progress
                    ))
            } catch {
                return .failure(error)
            }
        }
        switch result {
        case .success(let path): return path.lastComponent ?? name
        case .failure(.target(let error)): throw .target(folder.named(error))
        case .failure(let error): throw error
        }
    }

    /// The same of an open folder.
    package static func removeLeftovers(of name: FilePath.Component, in folder: Folder) {
        folder.apart { removeLeftovers(of: name, in: $0) }
    }
}
