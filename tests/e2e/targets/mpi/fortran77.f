C     The same by mpif.h, whose symbols compilers spell in their own ways.
      program old
      include 'mpif.h'
      integer rank, ranks, ierror, request, values(6)
      call MPI_INIT(ierror)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierror)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierror)
      values = rank
      call MPI_ALLREDUCE(MPI_IN_PLACE, values, 6, MPI_INTEGER,
     &  MPI_SUM, MPI_COMM_WORLD, ierror)
      call MPI_ISEND(values, 5, MPI_INTEGER, mod(rank + 1, ranks), 3,
     &  MPI_COMM_WORLD, request, ierror)
      call MPI_RECV(values, 6, MPI_INTEGER, MPI_ANY_SOURCE, 3,
     &  MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
      call MPI_WAIT(request, MPI_STATUS_IGNORE, ierror)
      call MPI_FINALIZE(ierror)
      end
