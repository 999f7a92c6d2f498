RENAME TABLE {live} TO {dropped}, {other} TO {live}, {dropped} TO {other}{on_cluster}
