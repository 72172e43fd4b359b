# "X,Q" of the norms that end in 8 bits, QUANTIZED; those of float32 and to e5m2 are seldom wanted. And
# "X,residual,weight,y" of every mixture of types that is compiled, where void is no residual: those that are used OFTEN,
# and the others; and "X,weight,y" of their GRADIENTS, where X is what is normalized. RMS_NORM_TYPES is usual, all, or
# the types of which to compile the usual ones.
set(OFTEN)
set(SELDOM)
set(GRADIENTS)
set(QUANTIZED)
set(TYPES float32 float16 bfloat16)
if(NOT RMS_NORM_TYPES)
  set(RMS_NORM_TYPES usual)
endif()
if(NOT RMS_NORM_TYPES MATCHES "^(usual|all)$")
  separate_arguments(named UNIX_COMMAND "${RMS_NORM_TYPES}")
  list(REMOVE_ITEM named ${TYPES})
  if(named)
    message(FATAL_ERROR "RMS_NORM_TYPES=${RMS_NORM_TYPES} is not usual, all, or some of ${TYPES} with blanks between them")
  endif()
  separate_arguments(TYPES UNIX_COMMAND "${RMS_NORM_TYPES}")
  list(REMOVE_DUPLICATES TYPES)
endif()
foreach(type ${TYPES})
  list(APPEND OFTEN ${type},void,${type},${type} ${type},${type},${type},${type})
endforeach()

if(NOT RMS_NORM_TYPES STREQUAL "all" AND float32 IN_LIST TYPES)
  foreach(half ${TYPES})
    if(half STREQUAL "float32")
      continue()
    endif()
    list(APPEND SELDOM
         # the weight in float32
         ${half},void,float32,${half} ${half},${half},float32,${half}
         # all but the weight in float32
         float32,void,${half},float32 float32,float32,${half},float32
         # x in float32, and the result of 16 bits; the residual in float32
         float32,void,${half},${half} ${half},float32,${half},${half}
         # a branch of autocast: the residual and the weight in float32
         ${half},float32,float32,${half})
  endforeach()
elseif(RMS_NORM_TYPES STREQUAL "all")
  foreach(x ${TYPES})
    foreach(residual void ${TYPES})
      foreach(weight ${TYPES})
        foreach(y ${TYPES})
          list(APPEND SELDOM "${x},${residual},${weight},${y}")
        endforeach()
      endforeach()
    endforeach()
  endforeach()
  list(REMOVE_ITEM SELDOM ${OFTEN})
endif()
foreach(mixture ${OFTEN} ${SELDOM})
  string(REPLACE "," ";" types ${mixture})
  list(POP_FRONT types x residual weight y)
  if(NOT residual STREQUAL "void")
    set(x ${residual}) # as the sum, which is what is normalized
  endif()
  list(APPEND GRADIENTS ${x},${weight},${y})
endforeach()
list(REMOVE_DUPLICATES GRADIENTS)
foreach(type ${TYPES})
  if(RMS_NORM_TYPES MATCHES "^(usual|all)$" OR NOT type STREQUAL "float32")
    list(APPEND QUANTIZED ${type},e4m3 ${type},int8)
  endif()
  if(RMS_NORM_TYPES STREQUAL "all")
    list(APPEND QUANTIZED ${type},e5m2)
  endif()
endforeach()
